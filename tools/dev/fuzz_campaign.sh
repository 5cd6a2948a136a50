#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# fuzz_campaign.sh OUT SECONDS [HARNESS]...: runs libFuzzer on each harness of tests/fuzz, or on those named, for that many seconds on
# all cores, after cmake --build --preset fuzz. It begins with the seeds, the stored findings and kept.tar.gz. OUT/found/HARNESS gets
# one file for each finding; exit code 1 if there is any. OUT/corpus stays for the next campaign.
# fuzz_campaign.sh --keep OUT: writes a small set of inputs with the same coverage into tests/fuzz/kept.tar.gz.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd) program=$root/build/fuzz/tests/fuzz/oscar_fuzz
# The longest mutated input. Larger ones find nothing more and take most of the time. Seeds may be
# longer.
longest() { case $1 in report) echo 65536 ;; artifact | pt) echo 16384 ;; *) echo 4096 ;; esac; } # bytes
# The sanitizer reports a mismatch when libstdc++.so frees what stable_sort got by nothrow new; that
# is not our bug.
export ASAN_OPTIONS="abort_on_error=1:alloc_dealloc_mismatch=0:detect_leaks=0:quarantine_size_mb=1:allocator_may_return_null=0"
export UBSAN_OPTIONS=print_stacktrace=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
fuzz() { # HARNESS [ARGUMENT]...; entropic schedules cost most of the time where a corpus has thousands of inputs
  OSCAR_FUZZ_HARNESS=$1 "$program" -timeout=10 -rss_limit_mb=2500 -malloc_limit_mb=400 -entropic=0 "${@:2}"
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tar -xzf "$root/tests/fuzz/kept.tar.gz" -C "$scratch"

if [ "$1" = --keep ]; then
  for harness in $(ls "$2/corpus"); do
    mkdir -p "$scratch/$harness" && mv "$scratch/$harness" "$scratch/before" && mkdir "$scratch/$harness"
    fuzz "$harness" -set_cover_merge=1 -use_counters=0 -max_len=65536 "$scratch/$harness" "$2/corpus/$harness" "$scratch/before" 2>/dev/null
    rm -rf "$scratch/before"
    [ -n "$(ls "$scratch/$harness")" ] || { echo "$harness: nothing was merged; kept.tar.gz stays as it is" >&2; exit 1; }
    echo "$harness: $(ls "$scratch/$harness" | wc -l) inputs"
  done
  tar -C "$scratch" --sort=name --owner=0 --group=0 --mtime=@0 -cf - . | gzip -9n >"$root/tests/fuzz/kept.tar.gz"
  exit
fi

out=$1 seconds=$2
shift 2
mkdir -p "$out"
out=$(cd "$out" && pwd)
[ $# -gt 0 ] || set -- $("${program}_plain" -names)
"${program}_plain" -seeds="$scratch/seeds" "$@"
for harness; do
  mkdir -p "$out/corpus/$harness" "$out/found/$harness"
  from=()
  for folder in "$scratch/seeds/$harness" "$scratch/$harness" "$root/tests/fuzz/corpus/$harness"; do [ -d "$folder" ] && from+=("$folder"); done
  # A process ends when it finds something; the others continue.
  fuzz "$harness" -fork="$(nproc)" -ignore_crashes=1 -max_total_time="$seconds" -max_len="$(longest "$harness")" \
    -artifact_prefix="$out/found/$harness/" "$out/corpus/$harness" "${from[@]}" 2>&1 | tail -1
done
find "$out/found" -type d -empty -delete
[ ! -d "$out/found" ] || { find "$out/found" -type f; exit 1; }
