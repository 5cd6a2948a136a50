#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Calibrates and validates the bundled model on a GPU that fails: one call of the CUDA runtime
# fails, alone or with all later ones (tests/tools/cuda_faults.c), at points spread over all calls
# of each kind. Afterwards there are the bytes of a run without faults; or there is an error that
# names the step, no artifact, and a job that resumes to those bytes.
#
#   tools/dev/gpu_faults.sh [PROGRAMS [POINTS]]     tools/ of a build with tests; points of each kind and way, default 24
#
# Configure with -DOSCAR_CUDA_SHARED_RUNTIME=ON, or faults do not reach the launches of our own kernels. OSCAR_MODEL names another model.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
export programs=${1:-build/cuda/tools} model=${OSCAR_MODEL:-tests/data/tiny-qwen3}
points=${2:-24} scratch=$(mktemp -d)
gpus=$(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l)
trap 'rm -rf "$scratch"' EXIT
faults=$programs/../tests/tools/liboscar_cuda_faults.so
[ -f "$faults" ] || { echo "no $faults: build the tests too"; exit 1; }
export scratch gpus faults

run() { # calibrate|validate OUT
  if [ "$1" = calibrate ]; then
    "$programs/oscar-calibrate" "$model" --device cuda --tokens 3000 -o "$2"
  else
    "$programs/oscar-validate" "$scratch/calibrate" --model "$model" --device cuda --sequences 2 --length 512 --needle-samples 0 --tool-calls 0 -o "$2"
  fi
}
bytes() { (cd "$1" 2>/dev/null && find . -type f ! -name timings.json ! -name '*.html' | sort | xargs sha256sum | sha256sum | cut -c1-16); }
steps='error: ((loading|running|fitting|writing|keeping) layer [0-9]+|[a-z]+ing[a-z: 0-9]*: CUDA)'

# Prints one line about one point: how the run ended, PROGRAM, KIND, WAY, K and the error.
try() { # PROGRAM KIND WAY K
  local out=$scratch/$1-$2-$3-$4 code said how
  local environment=(LD_PRELOAD="$faults" OSCAR_CUDA_FAULT_STACK="$out.stack" OSCAR_CUDA_FAULT="$2" OSCAR_CUDA_FAULT_AT="$4")
  [ "$3" = alone ] || environment+=(OSCAR_CUDA_FAULT_STAYS=1)
  # Spreads the points over all GPUs.
  environment+=(CUDA_VISIBLE_DEVICES=$(($4 % gpus)))
  # shellcheck disable=SC2016
  (export "${environment[@]}"; timeout -k 1 120 bash -c 'run "$@"' - "$1" "$out") >"$out.log" 2>&1
  code=$?
  said=$(grep -m1 error: "$out.log")
  if [ $code -eq 0 ] && [ "$(bytes "$out")" = "$(cat "$scratch/$1.bytes")" ]; then
    how=recovered
  elif [ $code -ne 4 ] || [ -e "$out" ] || [ "$(grep -c error: "$out.log")" -ne 1 ]; then
    how="WRONG-exit-$code"
    said="$said $(tail -n 2 "$out.log" | tr '\n' ' ')"
  elif run "$1" "$out" >"$out.log" 2>&1 && [ "$(bytes "$out")" = "$(cat "$scratch/$1.bytes")" ]; then
    how=resumed
    # Names the callers if the error has no step: addresses for addr2line -Cfe oscar-PROGRAM.
    [[ $said =~ $steps ]] || { how=resumed-unnamed said+=" from $(grep -oP 'oscar-[a-z]+\(\+\K0x[0-9a-f]+' "$out.stack" | head -12 | tr '\n' ' ')"; }
  else
    how=WRONG-resumed
  fi
  rm -rf "$out" "$out.job" "$out.log" "$out.stack"
  echo "$how $1 $2 $3 $4 $said"
}
export -f run bytes try
export steps

start=$SECONDS
for program in calibrate validate; do
  LD_PRELOAD=$faults OSCAR_CUDA_FAULT_COUNT=$scratch/counts run $program "$scratch/$program" >"$scratch/log" 2>&1 ||
    { echo "$program fails without faults:"; tail -3 "$scratch/log"; exit 1; }
  bytes "$scratch/$program" >"$scratch/$program.bytes"
  run $program "$scratch/again" >/dev/null 2>&1
  [ "$(bytes "$scratch/again")" = "$(cat "$scratch/$program.bytes")" ] || { echo "two runs of $program differ"; exit 1; }
  rm -rf "$scratch/again"
  echo "$program makes $(tr '\n' ' ' <"$scratch/counts")calls; bytes $(cat "$scratch/$program.bytes")"
  # The first calls one by one, the rest at even distances.
  while read -r kind calls; do
    python3 - "$calls" "$points" <<'EOF' | while read -r k; do echo "$program $kind alone $k"; echo "$program $kind stays $k"; done
import sys
calls, points = map(int, sys.argv[1:])
first = min(calls, points // 4)
for k in sorted({*range(1, first + 1), *(round(calls * (i + 1) / (points - first + 1)) for i in range(points - first))} - {0}):
    print(k)
EOF
  done <"$scratch/counts"
done | tee >(grep calls >&2) | grep -v calls | shuf --random-source=<(yes) >"$scratch/points"
[ -s "$scratch/points" ] || exit 1
# shellcheck disable=SC2016
xargs -P "${OSCAR_AT_ONCE:-10}" -L 1 bash -c 'try "$@"' - <"$scratch/points" >"$scratch/results"
awk '{ n[$2 " " $3 " " $4 " " $1]++ } END { for (k in n) print n[k], k }' "$scratch/results" | sort -k2
echo "said:"
grep -o 'error: .*' "$scratch/results" | sed -E 's/layer [0-9]+/layer N/; s/[0-9.]+ (MiB|GiB|KiB|bytes)/N/g' | cut -c1-110 | sort | uniq -c | sort -rn | head -30
grep -E '^(WRONG|resumed-unnamed)' "$scratch/results" | head -40
echo "$(wc -l <"$scratch/results") points in $((SECONDS - start)) s"
! grep -q '^WRONG' "$scratch/results"
