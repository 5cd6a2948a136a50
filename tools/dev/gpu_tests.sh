#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# gpu_tests.sh PACK: runs the test programs labelled gpu on a machine with a GPU that has this tree but no build. `gpu_tests.sh
# --pack PACK` makes PACK here from build/dev (BUILD): the programs and their libraries, except LibTorch's, which LD_LIBRARY_PATH
# names on the other machine. Trap: do not pack a build with -Ofc max, as in CI: its kernels are too slow for the tests of decode
# and bandwidth. Prints the tests that fail and exits with 1 if there are any.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
if [ "$1" = --pack ]; then
  build=${BUILD:-$root/build/dev} pack=$2
  mkdir -p "$pack/tests"
  echo "$root" >"$pack/source"
  ctest --test-dir "$build" -L gpu --show-only=json-v1 |
    python3 -c 'import json, sys; print(*sorted({t["command"][0] for t in json.load(sys.stdin)["tests"]}), sep="\n")' |
    while read -r program; do
      strip -o "$pack/tests/${program##*/}" "$program"
      "$root/tools/dev/pack_libraries.sh" "$pack/lib" "$program" torch
    done
  exit
fi

pack=$(cd "$1" && pwd) failed=0
source=$(cat "$pack/source") # the path at which the tests look for their data
[ -e "$source" ] || { mkdir -p "$(dirname "$source")" && ln -s "$root" "$source"; }
export LD_LIBRARY_PATH=$pack/lib:${LD_LIBRARY_PATH:-}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for program in "$pack"/tests/*; do
  echo "== ${program##*/}"
  "$program" --gtest_brief=1 >"$log" 2>&1 || failed=1
  head -20 "$log"
  tail -n +21 "$log" | grep -E '^\[ +(FAILED|PASSED)'
done
exit $failed
