#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# fuzz_campaign.sh PACK OUT [CORES] [SECONDS [ROUND]]: runs the harnesses of tests/fuzz for a time, on a machine that has nothing of
# this tree. PACK is what fuzz_campaign.sh --pack PACK [HARNESS]... makes here of build/fuzz: the program with its libraries, a corpus
# for each harness, or each that is named, of seeds and of what is one step away from them (half an hour of two cores, 3 GB of memory for that time),
# and what was run before, done.tsv and history.tsv. Rounds of ROUND seconds (240): cores are shared out by the time that harnesses
# need to reach their bars (BARS below), each a process of its own over the harness's one corpus, which is merged after each round. OUT
# gets table.tsv, history.tsv, done.tsv, corpus.tar.gz and found/HARNESS/, one file for each finding, anew after each round;
# fuzz_campaign.sh --take OUT PACK puts corpora and counts back for the next one, and --keep PACK what reaches their edges, with
# the counts, into tests/fuzz/kept.tar.gz, from which the next --pack begins.
set -u
# Readers of strangers' bytes: 50 million executions, of artifact and zoo together, and of moments and dumps; the others: 5.
BARS="${OSCAR_FUZZ_BARS:-safetensors 50 pt 50 tokenizer 50 config 50 artifact 5 zoo_entry 20 zoo_json 15 bundle 11 moments 46}" # millions
bar() { local b=5; set -- $1 $BARS; local n=$1; shift; while [ $# -gt 1 ]; do [ "$1" = "$n" ] && b=$2; shift 2; done; echo "${b}000000"; }
# What a mutated input may have: no more than finds things, or most of the time goes into large ones. Seeds may be longer.
longest() { case $1 in report) echo 65536 ;; artifact | pt) echo 16384 ;; *) echo 4096 ;; esac; } # bytes
# libstdc++.so frees what stable_sort asked for as nothrow: no mismatch of ours.
sanitizers="abort_on_error=1:alloc_dealloc_mismatch=0:detect_leaks=0:quarantine_size_mb=1:thread_local_quarantine_size_kb=64:malloc_context_size=0:max_malloc_fill_size=0:allocator_may_return_null=0"
fuzz() { # PACK HARNESS [ARGUMENT]...
  local pack=$1
  OSCAR_FUZZ_HARNESS=$2 LD_LIBRARY_PATH=$pack/lib ASAN_OPTIONS=$sanitizers UBSAN_OPTIONS=print_stacktrace=1 \
    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 timeout -s INT -k 5 "${within:-600}" "$pack/oscar_fuzz" -timeout=10 -rss_limit_mb=2500 -malloc_limit_mb=400 -entropic=0 "${@:3}"
}
edges() { # PACK HARNESS CORPUS...
  fuzz "$1" "$2" -runs=0 -shuffle=0 -max_len=65536 "${@:3}" 2>&1 | grep -oE 'cov: [0-9]+' | tail -1 | tr -dc 0-9
}
# done.tsv: harness, executions of all campaigns, executions a second and core. history.tsv: harness, executions, edges, at the
# beginning and after each round.
executions() { awk -v h="$2" '$1 == h {n = $2} END {print n + 0}' "$1/done.tsv"; } # PACK HARNESS

if [ "$1" = --take ]; then
  [ ! -f "$2/corpus.tar.gz" ] || tar -xzf "$2/corpus.tar.gz" -C "$3" || exit 1 # none where the first round was cut off
  cp "$2/done.tsv" "$2/history.tsv" "$3/"
  exit
fi

# Thousands of small files come and go.
TMPDIR=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

if [ "$1" = --pack ]; then
  pack=$2 root=$(cd "$(dirname "$0")/.." && pwd)
  shift 2
  build=$root/build/fuzz/tests/fuzz
  mkdir -p "$pack/corpus" "$TMPDIR/kept"
  tar -xzf "$root/tests/fuzz/kept.tar.gz" -C "$TMPDIR/kept"
  mv "$TMPDIR"/kept/*.tsv "$pack/"
  strip -o "$pack/oscar_fuzz" "$build/oscar_fuzz"
  "$root/tools/pack_libraries.sh" "$pack/lib" "$build/oscar_fuzz"
  strip "$pack"/lib/* 2>/dev/null
  cp "$0" "$pack/"
  collect() { # HARNESS: of its seeds, of what was kept and of what once was a finding, those with features of their own
    local from=() folder reached
    ASAN_OPTIONS=$sanitizers "$build/oscar_fuzz_plain" -seeds="$TMPDIR/seeds" "$1"
    for folder in "$TMPDIR/seeds/$1" "$TMPDIR/kept/$1" "$root/tests/fuzz/corpus/$1"; do [ -d "$folder" ] && from+=("$folder"); done
    mkdir -p "$pack/corpus/$1"
    within=3000 fuzz "$pack" "$1" -merge=1 -max_len=65536 -artifact_prefix="$pack/failed-" "$pack/corpus/$1" "${from[@]}" 2>/dev/null
    awk -v h="$1" '$1 == h' "$pack/history.tsv" >"$TMPDIR/rows.$1"
    if [ -d "$TMPDIR/kept/$1" ] && reached=$(edges "$pack" "$1" "$TMPDIR/kept/$1") && [ "$reached" != "$(tail -1 "$TMPDIR/rows.$1" | cut -f 3)" ]; then
      row "$1" "$reached" >"$TMPDIR/rows.$1" # another program's edges are no measure for this one's
    fi
    row "$1" "$(edges "$pack" "$1" "$pack/corpus/$1")" | tee -a "$TMPDIR/rows.$1"
    rm -rf "$TMPDIR/seeds/$1" "$TMPDIR/kept/$1"
  }
  row() { printf '%s\t%s\t%s\n' "$1" "$(executions "$pack" "$1")" "$2"; } # HARNESS EDGES
  [ $# -gt 0 ] || set -- $(ASAN_OPTIONS=$sanitizers "$build/oscar_fuzz_plain" -names)
  for harness; do
    collect "$harness" &
    [ "$(jobs -r | wc -l)" -lt "$(nproc)" ] || wait -n
  done
  wait
  grep -vE "^($(echo "$@" | tr ' ' '|'))[[:space:]]" "$pack/history.tsv" >"$TMPDIR/others"
  cat "$TMPDIR/others" "$TMPDIR"/rows.* >"$pack/history.tsv"
  ls "$pack"/failed-* 2>/dev/null && { echo "these are findings" >&2; exit 1; }
  exit
fi
if [ "$1" = --keep ]; then
  pack=$2 root=$(cd "$(dirname "$0")/.." && pwd) kept=$TMPDIR/kept
  mkdir "$kept"
  tar -xzf "$root/tests/fuzz/kept.tar.gz" -C "$kept"
  for harness in $(ls "$pack/corpus"); do
    mkdir -p "$kept/$harness" && mv "$kept/$harness" "$kept/before" && mkdir "$kept/$harness"
    from=("$pack/corpus/$harness" "$kept/before")
    [ -d "$pack/slow/$harness" ] && from+=("$pack/slow/$harness")
    fuzz "$pack" "$harness" -set_cover_merge=1 -use_counters=0 -max_len=65536 "$kept/$harness" "${from[@]}" 2>/dev/null
    rm -rf "$kept/before"
    [ -n "$(ls "$kept/$harness")" ] || { echo "$harness: nothing was merged; kept.tar.gz stays as it is" >&2; exit 1; }
    echo "$harness: $(ls "$kept/$harness" | wc -l) inputs"
  done
  cp "$pack/done.tsv" "$pack/history.tsv" "$kept/"
  tar -C "$kept" --sort=name --owner=0 --group=0 --mtime=@0 -cf - . | gzip -9n >"$root/tests/fuzz/kept.tar.gz"
  exit
fi

pack=$(cd "$1" && pwd) out=$2 cores=${3:-$(nproc)} seconds=${4:-300} each=${5:-240}
mkdir -p "$out/found" "$out/logs"
out=$(cd "$out" && pwd)
corpus=$TMPDIR/corpus slow=$TMPDIR/slow
cp -r "$pack/corpus" "$corpus"
mkdir "$slow"
[ -d "$pack/slow" ] && cp -r "$pack/slow" "$TMPDIR/"
cp "$pack/history.tsv" "$out/history.tsv"
declare -A total speed here spent cov
names=$(ls "$pack/corpus")
for h in $names; do
  total[$h]=$(executions "$pack" "$h")
  speed[$h]=$(awk -v h="$h" '$1 == h {v = $3} END {print (v > 0 ? v : 2000)}' "$pack/done.tsv")
  here[$h]=0 spent[$h]=0 cov[$h]=0
done

tables() {
  local h early growth found
  printf 'harness\texecutions\there\tcore-seconds\tper second\tedges\tgrowth in last tenth\tfindings\n' >"$out/table.tsv"
  grep -vE "^($(echo $names | tr ' ' '|'))[[:space:]]" "$pack/done.tsv" >"$out/done.tsv"
  for h in $names; do
    early=$(awk -v h="$h" -v limit="$((total[$h] * 9 / 10))" '$1 == h && $2 <= limit {c = $3} END {print c + 0}' "$out/history.tsv")
    growth=$(awk -v a="$early" -v b="${cov[$h]}" 'BEGIN {if (a > 0 && b > 0) printf "%.2f %%", (b > a ? b - a : 0) * 100 / a; else print "?"}')
    found=$(find "$out/found/$h" -type f 2>/dev/null | wc -l)
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$h" "${total[$h]}" "${here[$h]}" "${spent[$h]}" "${speed[$h]}" "${cov[$h]}" "$growth" "$found" >>"$out/table.tsv"
    printf '%s\t%s\t%s\n' "$h" "${total[$h]}" "${speed[$h]}" >>"$out/done.tsv"
  done
}

worker() { # HARNESS JOB SECONDS: fuzzes that long, whatever is found
  local until=$((SECONDS + $3)) left
  while left=$((until - SECONDS)) && [ "$left" -gt 1 ]; do
    within=$((left + 15)) fuzz "$pack" "$1" -max_total_time="$left" -max_len="$(longest "$1")" -seed=$RANDOM$2 -reload=10 \
      -print_final_stats=1 -artifact_prefix="$out/found/$1/" "$corpus/$1" >>"$out/logs/$1.$2" 2>&1
  done
}
merge() { # HARNESS CORES: its corpus as small as its features, what is slow aside, and the edges of both
  local from=("$corpus/$1" "$slow/$1") list part all
  mkdir -p "$corpus.merged/$1" "$slow/$1"
  if [ "$2" -gt 1 ]; then # in parts first
    from=("$slow/$1")
    ls "$corpus/$1" | split -n r/"$2" - "$TMPDIR/list.$1."
    for list in "$TMPDIR/list.$1".*; do
      part=$TMPDIR/part.$1.${list##*.} all=$TMPDIR/all.$1.${list##*.}
      mkdir -p "$part" "$all"
      (cd "$corpus/$1" && xargs -r mv -t "$all" <"$list")
      fuzz "$pack" "$1" -merge=1 -max_len=65536 -artifact_prefix="$out/found/$1/" "$part" "$all" >/dev/null 2>&1 || mv "$all"/* "$part/" &
      from+=("$part")
    done
    wait
  fi
  if fuzz "$pack" "$1" -merge=1 -max_len=65536 -artifact_prefix="$out/found/$1/" "$corpus.merged/$1" "${from[@]}" >"$out/logs/$1.merge" 2>&1; then
    rm -rf "${corpus:?}/$1" "${slow:?}/$1"
    mv "$corpus.merged/$1" "$corpus/$1"
    mkdir "$slow/$1"
  elif [ "$2" -gt 1 ]; then
    mv "$TMPDIR/part.$1".*/* "$corpus/$1/"
  fi
  rm -rf "$TMPDIR"/{part,all,list}."$1".*
  # A few inputs (a model of 4,095 layers) would take most of the time from now on.
  export -f fuzz
  export pack sanitizers
  find "$corpus/$1" -type f | xargs -r -n 200 -P "$2" bash -c 'fuzz "$pack" "$@" 2>&1' - "$1" |
    awk '/^Executed .* in [0-9]+ ms/ && $(NF - 1) >= 20 {print $2}' | xargs -r mv -t "$slow/$1"
  edges "$pack" "$1" "$corpus/$1" "$slow/$1" >"$out/logs/$1.edges"
}

end=$((SECONDS + seconds))
while [ $((end - SECONDS)) -gt 20 ]; do
  length=$((end - SECONDS < each * 3 / 2 ? end - SECONDS - 10 : each))
  plan=$(for h in $names; do echo "$h $(bar "$h") ${total[$h]} ${speed[$h]} ${spent[$h]}"; done |
    awk -v cores="$cores" '
      {need[$1] = $3 < $2 ? ($2 - $3) / $4 + 1 : 1 / ($5 + 1e6)}
      END {for (i = 0; i < cores; ++i) {best = ""
             for (h in need) if (best == "" || need[h] / (1 + has[h]) > need[best] / (1 + has[best])) best = h
             ++has[best]}
           for (h in has) if (has[h] > 0) print h, has[h]}')
  while read -r h jobs; do
    mkdir -p "$out/found/$h"
    for job in $(seq "$jobs"); do worker "$h" "$job" "$length" & done
  done <<<"$plan"
  wait
  while read -r h jobs; do
    n=$(cat "$out/logs/$h".[0-9]* | awk '/^stat::number_of_executed_units/ {n += $2} END {print n + 0}')
    here[$h]=$((here[$h] + n)) total[$h]=$((total[$h] + n)) spent[$h]=$((spent[$h] + jobs * length))
    [ "$n" -gt 0 ] && speed[$h]=$((n / (jobs * length) + 1))
  done <<<"$plan"
  tables # what is cut off in what follows has been run
  while read -r h jobs; do merge "$h" "$jobs" & done <<<"$plan"
  wait
  while read -r h jobs; do
    cov[$h]=$(cat "$out/logs/$h.edges")
    [ -n "$(ls "$out/found/$h")" ] && cat "$out/logs/$h".[0-9]* | grep -E -A 30 'ERROR|runtime error|fuzz: |finding: ' | head -200 >"$out/found/$h.log"
    printf '%s\t%s\t%s\n' "$h" "${total[$h]}" "${cov[$h]}" >>"$out/history.tsv"
    rm -f "$out/logs/$h".*
  done <<<"$plan"
  tables
  tar -czf "$out/corpus.new" -C "$TMPDIR" corpus slow && mv "$out/corpus.new" "$out/corpus.tar.gz"
done
find "$out/found" -type d -empty -delete
rm -rf "$out/logs"
column -t -s "$(printf '\t')" "$out/table.tsv" 2>/dev/null || cat "$out/table.tsv"
