#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# soak_many.sh PACK OUT SECONDS [SEED]: tools/soak.sh on every pair of cores of a machine that has this tree and nothing built, for a
# time. PACK is what soak_many.sh --pack PACK makes here of build/dev (BUILD): programs and their libraries but LibTorch's, which
# LD_LIBRARY_PATH names there. What stops is kept in OUT and goes on with another seed; a table of what happened at the end.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
if [ "$1" = --pack ]; then
  build=${BUILD:-$root/build/dev} pack=$2
  mkdir -p "$pack/tools" "$pack/tests/tools"
  for program in oscar-calibrate oscar-validate oscar-zoo; do
    strip -o "$pack/tools/$program" "$build/tools/$program"
    "$root/tools/pack_libraries.sh" "$pack/lib" "$build/tools/$program" torch
  done
  cp "$build/tests/tools/liboscar_write_faults.so" "$pack/tests/tools/"
  exit
fi

pack=$(cd "$1" && pwd) seconds=$3 seed=${4:-$(date +%s)}
mkdir -p "$2"
out=$(cd "$2" && pwd)
export BUILD=$pack LD_LIBRARY_PATH=$pack/lib:${LD_LIBRARY_PATH:-} OMP_WAIT_POLICY=PASSIVE CUDA_VISIBLE_DEVICES=
fast=$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)
end=$((SECONDS + seconds))
pairs=$(($(nproc) / 2))
[ $pairs -gt 0 ] || { echo "soak_many: two cores are needed" >&2; exit 1; }
rounds() { # PAIR: on its two cores
  local first=$((seed + 1000000 * $1)) left
  while left=$((end - SECONDS)) && [ $left -gt 3 ]; do
    SCRATCH=$fast/soak.$1 timeout -s KILL $left taskset -c $((2 * $1)),$((2 * $1 + 1)) "$root/tools/soak.sh" $first >>"$out/$1.log" 2>>"$out/$1.err"
    [ $((end - SECONDS)) -gt 3 ] || break
    first=$((first + 10000))
    cp -r "$fast/soak.$1" "$out/stopped.$1.$first"
  done 2>/dev/null
}
for ((pair = 0; pair < pairs; ++pair)); do rounds $pair & done
wait
rm -rf "$fast"/soak.*
echo "$pairs pairs of cores for $seconds s: $(cat "$out"/*.log | grep -c 'the same bytes$') rounds, $(cat "$out"/*.log | grep -c ': refused: ') refused"
grep -h 'the same bytes$' "$out"/*.log | sed 's/^soak: seed [0-9]*: [^:]*: *//; s/: --.*//' | tr -d , | tr ' ' '\n' | grep . | sort | uniq -c
grep -h '^soak: ' "$out"/*.err
