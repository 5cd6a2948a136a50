#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Several GPUs of one machine against one: the same bytes, and how much sooner. A synthetic model of Qwen3-8B's shapes at 120,000
# tokens and the models in .gpu/models, with 1, 2, 4 ... GPUs; a mixture of experts where its gigabytes are given.
#
#   tools/gpu_ranks.sh [PROGRAMS [SCRATCH [GIGABYTES_OF_EXPERTS]]]     folder of oscar-calibrate; default build/dev/tools
set -uo pipefail
cd "$(dirname "$0")/.."
programs=${1:-build/dev/tools} scratch=${2:-$(mktemp -d)} experts=${3:-0}
gpus=$(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l)
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
mkdir -p "$scratch"
failed=0

bytes() { (cd "$1" && find . -type f ! -name timings.json | sort | xargs sha256sum | sha256sum | cut -c1-16); }

calibrate() { # NAME MODEL OPTIONS...
  local name=$1 model=$2 n start seconds whole='' digest first=''
  shift 2
  for ((n = 1; n <= gpus; n *= 2)); do
    local out="$scratch/$name-$n" more=()
    [ "$n" -gt 1 ] && more=(--gpus "$n")
    rm -rf "$out" "$out.job"
    [ "$n" -eq 1 ] && "$programs/oscar-calibrate" "$model" "$@" -o "$out-warm" >"$scratch/log" 2>&1 # page cache, compiled kernels
    rm -rf "$out-warm" "$out-warm.job"
    start=$(date +%s.%N)
    if ! "$programs/oscar-calibrate" "$model" "$@" ${more[@]+"${more[@]}"} -o "$out" >"$scratch/log" 2>&1; then
      echo "$name: $n ranks FAILED"; tail -5 "$scratch/log"; failed=1; continue
    fi
    seconds=$(python3 -c "import time; print(f'{time.time() - $start:.2f}')")
    digest=$(bytes "$out")
    whole=${whole:-$seconds} first=${first:-$digest}
    [ "$digest" = "$first" ] || failed=1
    echo "$name: $n ranks, $seconds s, x $(python3 -c "print(f'{$whole / $seconds:.2f}')"), bytes $digest $([ "$digest" = "$first" ] && echo same || echo DIFFER)"
    python3 -c "
import json; t = json.load(open('$out/timings.json')); print('   ', {k: round(v, 2) for k, v in sorted(t['phases'].items(), key=lambda p: -p[1])[:8]})"
  done
}

for model in tests/data/tiny-qwen3 .gpu/models/*; do
  [ -d "$model" ] && calibrate "$(basename "$model")" "$model" --tokens 30000
done
[ -d "$scratch/8b" ] || python3 tools/bench/make_synthetic_model.py "$scratch/8b" --shards 8 >/dev/null
calibrate 8b "$scratch/8b" --tokens 120000 --max-sequence 4096
if [ "$experts" -gt 0 ]; then
  [ -d "$scratch/moe" ] || python3 tools/bench/make_synthetic_model.py "$scratch/moe" --family qwen3_moe --gigabytes "$experts" >/dev/null
  for ((n = 1; n <= gpus; n *= 2)); do # what the disk gave, counted by the kernel
    before=$(awk '{ s += $6 } END { print s }' /sys/block/*/stat)
    sync; echo 3 >/proc/sys/vm/drop_caches 2>/dev/null || echo "the page cache cannot be dropped here"
    rm -rf "$scratch/moe-read"*
    more=(); [ "$n" -gt 1 ] && more=(--gpus "$n")
    "$programs/oscar-calibrate" "$scratch/moe" --read direct --tokens 60000 ${more[@]+"${more[@]}"} -o "$scratch/moe-read" >"$scratch/log" 2>&1 ||
      { echo "moe: $n ranks FAILED"; tail -5 "$scratch/log"; failed=1; }
    after=$(awk '{ s += $6 } END { print s }' /sys/block/*/stat)
    echo "moe: $n ranks read $(python3 -c "print(f'{($after - $before) * 512 / 1e9:.1f}')") GB of $(du -sBG "$scratch/moe" | cut -f1) on disk, bytes $(bytes "$scratch/moe-read")"
  done
fi
# Who is killed ends all, and any number of ranks goes on.
"$programs/oscar-calibrate" "$scratch/8b" --tokens 60000 --gpus 2 --rank-timeout 10 -o "$scratch/killed" >"$scratch/log" 2>&1 &
launcher=$!
sleep 6
kill -9 "$(pgrep -P $launcher | tail -1)"
start=$(date +%s)
wait $launcher
echo "killed: exit $? after $(($(date +%s) - start)) s: $(grep error "$scratch/log" | head -1)"
"$programs/oscar-calibrate" "$scratch/8b" --tokens 60000 -o "$scratch/killed" >/dev/null 2>&1 &&
  "$programs/oscar-calibrate" "$scratch/8b" --tokens 60000 -o "$scratch/whole" >/dev/null 2>&1 &&
  echo "resumed by one: $([ "$(bytes "$scratch/killed")" = "$(bytes "$scratch/whole")" ] && echo same || echo DIFFER)"
exit $failed
