#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Compares several GPUs of one machine with one: equal bytes, speed, the plan and the bytes read.
# Runs a synthetic model of Qwen3-8B's shapes at 120,000 tokens, a mixture of experts, the bundled
# model and those in .gpu/models, with 1, 2, 4 ... GPUs. Ends within OSCAR_GPU_LIMIT seconds (570)
# and prints what it left out for lack of time.
#
#   tools/dev/gpu_ranks.sh [PROGRAMS [SCRATCH [GIGABYTES_OF_EXPERTS]]]     folder of oscar-calibrate; default build/dev/tools
#
# With OSCAR_SPEED=1 it runs only the model of Qwen3-8B's shapes, with 1 and 2 GPUs, once from a cold page cache and twice from a warm
# one, and prints the time that every rank spent in each phase. If OUT is set, timings.json of each run is kept there.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
calibrate=${1:-build/dev/tools}/oscar-calibrate scratch=${2:-$(mktemp -d)} experts=${3:-16}
limit=${OSCAR_GPU_LIMIT:-570} failed=0
# The number of GPUs and the options of each run; OSCAR_RANKS=N tries the script without GPUs.
gpus=${OSCAR_RANKS:-$(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l)}
of_ranks=--gpus device=cuda
[ -z "${OSCAR_RANKS:-}" ] || of_ranks=--ranks device=cpu
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
nvidia-smi topo -m 2>/dev/null | head -8
mkdir -p "$scratch"

left() { echo $((limit > SECONDS + 1 ? limit - SECONDS : 1)); }
enough() { # SECONDS WHAT
  [ "$(left)" -ge "$1" ] && return
  echo "$2: left out, $(left) s are left"
  return 1
}
bytes() { (cd "$1" 2>/dev/null && find . -type f ! -name timings.json | sort | xargs sha256sum | sha256sum | cut -c1-16); }
fail() { echo "$1 FAILED"; tail -5 "$scratch/log"; failed=1; }
# Runs a calibration in $scratch/NAME; $scratch/log gets its output and the bytes that its processes read, $scratch/seconds its time.
try() { # NAME MODEL OPTIONS...
  local out=$scratch/$1 model=$2 start code
  shift 2
  rm -rf "$out" "$out.job"
  start=$(date +%s.%N)
  # shellcheck disable=SC2016
  timeout -k 5 "$(left)" bash -c '"$@"; code=$?; grep -E "^(rchar|read_bytes)" /proc/$$/io; exit $code' io \
    "$calibrate" "$model" --device $device "$@" -o "$out" >"$scratch/log" 2>&1
  code=$?
  python3 -c "import time; print(f'{time.time() - $start:.2f}')" >"$scratch/seconds"
  return $code
}
ranks() { [ "$1" -eq 1 ] || echo "$of_ranks $1"; }
number() { python3 -c "import json; t = json.load(open('$scratch/$1/timings.json')); print(f'{t[\"$2\"]:.2f}')"; }

# Prints every rank's phases, the longest first, and the bytes that it read.
phases() { # NAME
  python3 - "$scratch/$1/timings.json" <<'END'
import json, sys
t = json.load(open(sys.argv[1]))
for rank, of in enumerate([t] + t.get('other_ranks', [])):
    longest = sorted(of['phases'].items(), key=lambda phase: -phase[1])[:24]
    print(f"    rank {rank}: {of['weight_bytes_read'] / 1e9:.2f} GB read,", ', '.join(f'{name} {seconds:.2f}' for name, seconds in longest))
END
}
# Drops the directory's files from the page cache, as far as that is allowed.
forget() { # DIRECTORY
  sync
  { echo 3 >/proc/sys/vm/drop_caches; } 2>/dev/null
  python3 - "$1" <<'END'
import os, sys
for name in os.listdir(sys.argv[1]):
    fd = os.open(os.path.join(sys.argv[1], name), os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
END
}
times() { # NAME RANKS SECONDS_OF_ONE LAYERS_OF_ONE
  echo "$1: $2 ranks, $(cat "$scratch/seconds") s in all (x $(python3 -c "print(f'{$3 / $(cat "$scratch/seconds"):.2f}')"))," \
    "$(number "$1" loop_seconds) s of layers (x $(python3 -c "print(f'{$4 / max($(number "$1" loop_seconds), 0.001):.2f}')"))"
}

speed() { # MODEL OPTIONS...
  local model=$1 n how name digest first='' whole loop
  shift
  "$calibrate" "$model" --device $device "$@" --dry-run $of_ranks 2 2>/dev/null | grep -E -A9 '^ranks |time' | sed 's/^/    plan: /'
  for how in cold warm again; do
    whole='' loop=''
    for n in 1 2; do
      name=speed-$how-$n
      enough 20 "$name" || return
      [ $how != cold ] || forget "$model"
      # shellcheck disable=SC2046
      try "$name" "$model" "$@" $(ranks $n) || { fail "$name"; continue; }
      digest=$(bytes "$scratch/$name") first=${first:-$digest}
      [ "$digest" = "$first" ] || failed=1
      whole=${whole:-$(cat "$scratch/seconds")} loop=${loop:-$(number "$name" loop_seconds)}
      times "$name" $n "$whole" "$loop"
      echo "    bytes $digest $([ "$digest" = "$first" ] && echo same || echo DIFFER)"
      phases "$name"
      [ -z "${OUT:-}" ] || cp "$scratch/$name/timings.json" "$OUT/$name.json"
      rm -rf "${scratch:?}/$name"
    done
  done
}

compare() { # NAME MODEL OPTIONS...
  local name=$1 model=$2 n first='' whole='' loop='' digest
  shift 2
  "$calibrate" "$model" --device $device "$@" --dry-run $of_ranks "$gpus" 2>/dev/null | grep -A9 '^ranks ' | sed 's/^/    plan: /'
  try "$name-warm" "$model" "$@" || fail "$name: warming up" # page cache, compiled kernels
  rm -rf "$scratch/$name-warm"
  for ((n = 1; n <= gpus; n *= 2)); do
    enough 20 "$name, $n ranks" || return
    # shellcheck disable=SC2046
    try "$name-$n" "$model" "$@" $(ranks $n) || { fail "$name, $n ranks"; continue; }
    digest=$(bytes "$scratch/$name-$n") first=${first:-$digest}
    whole=${whole:-$(cat "$scratch/seconds")} loop=${loop:-$(number "$name-$n" loop_seconds)}
    [ "$digest" = "$first" ] || failed=1
    times "$name-$n" $n "$whole" "$loop"
    echo "    bytes $digest $([ "$digest" = "$first" ] && echo same || echo DIFFER)"
    phases "$name-$n"
  done
}

# Waits until the run that writes $scratch/log has reached a layer.
await_layer() { # LAYER LAUNCHER
  while kill -0 "$2" 2>/dev/null && ! grep -q "^layer $1:" "$scratch/log"; do sleep 0.1; done
}

[ -n "${OSCAR_SPEED:-}" ] || compare tiny tests/data/tiny-qwen3 --tokens 30000
big=${OSCAR_BIG:-$scratch/8b}
[ -d "$big" ] || python3 tools/bench/make_synthetic_model.py "$big" --shards 8 >/dev/null
echo "synthetic model made after $SECONDS s"
# The run needs more token ids than the built-in text has.
python3 - >"$scratch/ids.jsonl" <<'END'
import json, random
random.seed(0)
for _ in range(30):
    print(json.dumps({"input_ids": [random.randrange(4096) for _ in range(4000)]}))
END
if [ -n "${OSCAR_SPEED:-}" ]; then
  speed "$big" --rank-timeout 25 --data "$scratch/ids.jsonl" --tokens "${OSCAR_TOKENS:-120000}"
  echo "$SECONDS s; failed: $failed"
  exit $failed
fi
compare 8b "$big" --data "$scratch/ids.jsonl" --tokens 120000

# A killed rank ends all ranks; a stop request commits the work; any number of ranks can resume it.
if enough 90 "killed, stopped and resumed"; then
  few=(--device "$device" --tokens 40000 --max-sequence 4096 --no-auto --rank-timeout 10 -o "$scratch/ended")
  rm -rf "$scratch/ended" "$scratch/ended.job"
  for how in KILL TERM; do
    : >"$scratch/log"
    "$calibrate" "$big" "${few[@]}" $of_ranks 2 >"$scratch/log" 2>&1 &
    launcher=$!
    await_layer "$([ $how = KILL ] && echo 1 || echo 2)" $launcher
    victims=$(cat /proc/$launcher/task/$launcher/children 2>/dev/null)
    start=$(date +%s)
    if [ $how = KILL ]; then kill -9 "$(echo "$victims" | awk '{ print $2 }')"; else kill -TERM $launcher; fi
    wait $launcher
    echo "$how: exit $? after $(($(date +%s) - start)) s: $(grep -E 'error|resume' "$scratch/log" | head -1)"
    for victim in $victims; do kill -0 "$victim" 2>/dev/null && echo "process $victim is left" && failed=1; done
  done
  if [ -d "$scratch/ended.job" ]; then
    "$calibrate" "$big" "${few[@]}" >"$scratch/log" 2>&1 || fail "resumed by one"
    grep -m1 resuming "$scratch/log"
  fi
  try ended-whole "$big" --tokens 40000 --max-sequence 4096 --no-auto || fail "the whole"
  if [ "$(bytes "$scratch/ended")" = "$(bytes "$scratch/ended-whole")" ]; then echo "resumed by one: same"; else fail "resumed by one, other bytes:"; fi
fi

# Counts the bytes that the disk gave to all processes, by the kernel's statistics: with direct
# reads, and through a cold page cache.
if [ "$experts" -gt 0 ] && enough 120 "experts"; then
  moe=${OSCAR_MOE:-$scratch/moe}
  [ -d "$moe" ] || python3 tools/bench/make_synthetic_model.py "$moe" --family qwen3_moe --gigabytes "$experts" --shards 8 >/dev/null
  first=''
  for read in direct cached; do
    how=(--read "$read")
    [ $device = cuda ] || how=()
    for ((n = 1; n <= gpus; n *= 2)); do
      enough 30 "experts read $read by $n ranks" || break 2
      sync
      { echo 3 >/proc/sys/vm/drop_caches; } 2>/dev/null || echo "the page cache cannot be dropped here"
      before=$(awk '{ s += $6 } END { print s }' /sys/block/*/stat 2>/dev/null)
      # shellcheck disable=SC2046
      try moe-read "$moe" "${how[@]}" --tokens 60000 $(ranks $n) || fail "experts, $n ranks"
      after=$(awk '{ s += $6 } END { print s }' /sys/block/*/stat 2>/dev/null)
      digest=$(bytes "$scratch/moe-read") first=${first:-$digest}
      [ "$digest" = "$first" ] || failed=1
      echo "experts: $n ranks, $read, $(cat "$scratch/seconds") s; $(du -sB1000000 "$moe" | cut -f1) MB on disk;" \
        "disks gave $(python3 -c "print(round((${after:-0} - ${before:-0}) * 512e-6))") MB; $(grep -E '^(rchar|read_bytes)' "$scratch/log" | tr '\n' ' ')" \
        "bytes $digest $([ "$digest" = "$first" ] && echo same || echo DIFFER)"
    done
  done
  "$calibrate" "$moe" --device $device --tokens 60000 --dry-run $of_ranks "$gpus" 2>/dev/null | grep -A9 '^ranks ' | sed 's/^/    plan: /'
fi

for model in .gpu/models/*; do
  [ -d "$model" ] && enough 60 "$model" && compare "$(basename "$model")" "$model" --tokens 30000
done
echo "$SECONDS s; failed: $failed"
exit $failed
