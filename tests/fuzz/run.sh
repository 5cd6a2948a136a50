#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# run.sh HARNESS RUNS [FLAG...]: a campaign of libFuzzer from the seeds, the stored inputs and what earlier campaigns kept below
# build/fuzz/found/. Prints one row for RESULTS.md; a finding stays in the current folder as libFuzzer names it.
set -euo pipefail
harness=$1 runs=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build/fuzz/tests/fuzz
found=$root/build/fuzz/found/$harness
mkdir -p "$found" "$root/tests/fuzz/corpus/$harness"
"$build/oscar_fuzz_plain" -seeds="$root/build/fuzz/seeds" "$harness"
[ -d /dev/shm ] && export TMPDIR=/dev/shm
log=$(mktemp)
begin=$SECONDS
status=0
OSCAR_FUZZ_HARNESS=$harness "$build/oscar_fuzz" -runs="$runs" -timeout=10 -rss_limit_mb=1500 -max_len=65536 -print_final_stats=1 "$@" \
  "$found" "$root/build/fuzz/seeds/$harness" "$root/tests/fuzz/corpus/$harness" 2>"$log" || status=$?
executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
edges=$(grep -o 'cov: [0-9]*' "$log" | tail -1)
early=$(grep -o '^#[0-9]*.*cov: [0-9]*' "$log" |
  awk -v limit="$((${executions:-0} * 9 / 10))" '{n = substr($1, 2); if (n + 0 <= limit) c = $NF} END {print c}')
echo "| $harness | ${executions:-?} | ${edges#cov: } (${early:-?} at 90 %) | $((SECONDS - begin)) s | exit $status |"
[ "$status" = 0 ] || tail -40 "$log" >&2
rm -f "$log"
exit "$status"
