#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# fuzz_campaign.sh PACK OUT [CORES] [SECONDS]: runs the harnesses of tests/fuzz for a time, on a machine that has nothing of this
# tree. PACK is what fuzz_campaign.sh --pack PACK makes here of build/fuzz: the program with its libraries, a corpus for each
# harness, and done.tsv, what was run before. Rounds of 40 s: each core takes the harness below its bar that had
# the least time so far (BARS below). OUT gets table.tsv, history.tsv, done.tsv, corpus.tar.gz and found/HARNESS/, one file for each finding;
# fuzz_campaign.sh --take OUT PACK puts corpora and counts back for the next one.
set -u
# Readers of strangers' bytes: 50 million executions; the others: 5.
BARS="safetensors 50 pt 50 tokenizer 50 config 50 artifact 5 zoo_entry 50 bundle 50 moments 50"
bar() { local b=5; set -- $1 $BARS; local n=$1; shift; while [ $# -gt 1 ]; do [ "$1" = "$n" ] && b=$2; shift 2; done; echo "${b}000000"; }
# libstdc++.so frees what stable_sort asked for as nothrow: no mismatch of ours.
sanitizers="abort_on_error=1:alloc_dealloc_mismatch=0:detect_leaks=0:quarantine_size_mb=8:malloc_context_size=1:allocator_may_return_null=0"
fuzz() { # PACK HARNESS [ARGUMENT]...
  local pack=$1
  OSCAR_FUZZ_HARNESS=$2 LD_LIBRARY_PATH=$pack/lib ASAN_OPTIONS=$sanitizers UBSAN_OPTIONS=print_stacktrace=1 \
    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 "$pack/oscar_fuzz" -timeout=10 -rss_limit_mb=2500 -malloc_limit_mb=400 "${@:3}"
}

if [ "$1" = --pack ]; then
  pack=$2 root=$(cd "$(dirname "$0")/.." && pwd)
  build=$root/build/fuzz/tests/fuzz
  mkdir -p "$pack/lib" "$pack/corpus"
  ASAN_OPTIONS=$sanitizers "$build/oscar_fuzz_plain" -seeds="$pack/seeds"
  strip -o "$pack/oscar_fuzz" "$build/oscar_fuzz"
  # Everything but the C library itself, which must be the machine's own.
  ldd "$build/oscar_fuzz" | awk '$3 ~ /^\// {print $3}' | grep -vE '/(libc|libm|libpthread|libdl|librt|ld-linux[^/]*)\.so' |
    xargs -I{} cp -Lu {} "$pack/lib/"
  strip "$pack"/lib/* 2>/dev/null
  cp "$0" "$pack/"
  for harness in $("$build/oscar_fuzz_plain" -names); do
    mkdir -p "$pack/corpus/$harness" "$root/tests/fuzz/corpus/$harness"
    fuzz "$pack" "$harness" -merge=1 -max_len=65536 -artifact_prefix="$pack/failed-" "$pack/corpus/$harness" "$pack/seeds/$harness" "$root/tests/fuzz/corpus/$harness" 2>/dev/null
    echo "$harness: $(ls "$pack/corpus/$harness" | wc -l) inputs"
    rmdir --ignore-fail-on-non-empty "$root/tests/fuzz/corpus/$harness"
  done
  rm -rf "$pack/seeds"
  touch "$pack/done.tsv"
  exit
fi
if [ "$1" = --take ]; then
  tar -xzf "$2/corpus.tar.gz" -C "$3" && cp "$2/done.tsv" "$2/history.tsv" "$3/"
  exit
fi

pack=$(cd "$1" && pwd) out=$2 cores=${3:-$(nproc)} seconds=${4:-300}
mkdir -p "$out/found" "$out/logs"
out=$(cd "$out" && pwd)
touch "$pack/done.tsv" # harness, executions of all campaigns
TMPDIR=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)")
export TMPDIR
begin=$SECONDS
end=$((begin + seconds))
declare -A total speed here spent cov cov_first slow
names=$(ls "$pack/corpus")
for h in $names; do
  total[$h]=$(awk -v h="$h" '$1 == h {n = $2} END {print n + 0}' "$pack/done.tsv")
  speed[$h]=2000 here[$h]=0 spent[$h]=0 cov[$h]=0 cov_first[$h]=0
done

# worker HARNESS SECONDS LOG: restarts after a finding, whose input stays in found/.
worker() {
  local harness=$1 until=$((SECONDS + $2)) log=$3 runs=0 left
  : >"$log"
  mkdir -p "$out/found/$harness"
  while left=$((until - SECONDS)) && [ "$left" -gt 1 ] && [ "$runs" -lt 6 ]; do
    fuzz "$pack" "$harness" -max_total_time="$left" -max_len="$([ "$harness" = report ] && echo 65536 || echo 16384)" -print_final_stats=1 -entropic=0 -detect_leaks=0 \
      -artifact_prefix="$out/found/$harness/" "$pack/corpus/$harness" >"$log.part" 2>&1
    grep -E '^stat::number|cov: ' "$log.part" | tail -4 >>"$log"
    ls "$out/found/$harness/"* >/dev/null 2>&1 && tail -60 "$log.part" >"$out/found/$harness.log"
    runs=$((runs + 1))
  done
  rm -f "$log.part"
}

round=0
while [ $((end - SECONDS)) -gt 5 ]; do
  length=$((end - SECONDS < 60 ? end - SECONDS : 40))
  # Core-seconds that a harness still needs; below its bar first, then in turn.
  plan=$(for h in $names; do echo "$h $(bar "$h") ${total[$h]} ${speed[$h]} ${spent[$h]}"; done |
    awk -v cores="$cores" -v length_="$length" '
      {need[$1] = -$5 - ($3 > $2 ? 1e6 : 0)}
      END {for (i = 0; i < cores; ++i) {best = ""
             for (h in need) if (best == "" || need[h] > need[best]) best = h
             print best; need[best] -= length_}}')
  i=0
  for h in $plan; do
    worker "$h" "$length" "$out/logs/$h.$i" &
    i=$((i + 1))
  done
  wait
  for h in $(sort -u <<<"$plan"); do
    n=$(cat "$out/logs/$h".* | awk '/^stat::number_of_executed_units/ {n += $2} END {print n + 0}')
    workers=$(grep -cx "$h" <<<"$plan")
    edges=$(cat "$out/logs/$h".* | grep -o 'cov: [0-9]*' | awk '$2 > m {m = $2} END {print m + 0}')
    [ "${edges:-0}" -gt "${cov[$h]}" ] && cov[$h]=$edges
    here[$h]=$((here[$h] + n)) total[$h]=$((total[$h] + n)) spent[$h]=$((spent[$h] + workers * length))
    [ "$n" -gt 0 ] && speed[$h]=$((n / (workers * length) + 1))
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$round" "$h" "${total[$h]}" "${cov[$h]}" "$((workers * length))" "${speed[$h]}" >>"$out/history.tsv"
  done
  rm -f "$out"/logs/*
  round=$((round + 1))
done

# Edges of the first nine tenths, from the history of all campaigns that PACK knows.
cat "$pack/history.tsv" "$out/history.tsv" >"$out/history.all" 2>/dev/null
printf 'harness\texecutions\there\tcore-seconds\tper second\tedges\tgrowth in last tenth\tfindings\n' >"$out/table.tsv"
: >"$out/done.tsv"
for h in $names; do
  early=$(awk -v h="$h" -v limit="$((total[$h] * 9 / 10))" '$2 == h && $3 <= limit && $4 > c {c = $4} END {print c + 0}' "$out/history.all")
  growth=$(awk -v a="$early" -v b="${cov[$h]}" 'BEGIN {if (a > 0 && b > 0) printf "%.2f %%", (b > a ? b - a : 0) * 100 / a; else print "?"}')
  found=$(find "$out/found/$h" -type f 2>/dev/null | wc -l)
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$h" "${total[$h]}" "${here[$h]}" "${spent[$h]}" "${speed[$h]}" "${cov[$h]}" "$growth" "$found" >>"$out/table.tsv"
  printf '%s\t%s\n' "$h" "${total[$h]}" >>"$out/done.tsv"
done
mv "$out/history.all" "$out/history.tsv"
tar -czf "$out/corpus.tar.gz" -C "$pack" corpus
find "$out/found" -type d -empty -delete
rm -rf "$out/logs" "$TMPDIR"
column -t -s "$(printf '\t')" "$out/table.tsv" 2>/dev/null || cat "$out/table.tsv"
