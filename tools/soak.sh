#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# soak.sh [SEED [ROUNDS]]: calibrates a bundled model with random options, threads, locale, time zone, umask and home; again, killed at
# random times and resumed; compares every byte; validates, publishes, pulls and verifies. Stops at the first difference and
# prints the seed of its round, with which `soak.sh SEED 1` does the same again. BUILD, MODELS and SCRATCH may be set.
set -euo pipefail
seed=${1:-$(date +%s)} rounds=${2:-1000000}
root=$(cd "$(dirname "$0")/.." && pwd)
programs=${BUILD:-$root/build/dev}/tools
read -ra models <<<"${MODELS:-$root/tests/data/tiny-qwen3}"
mapfile -t models < <(realpath "${models[@]}")
scratch=${SCRATCH:-$(mktemp -d)}
mkdir -p "$scratch"

pick() { # VALUE... : one of them
  local n=$((RANDOM % $# + 1))
  echo "${!n}"
}

fail() {
  echo "soak: seed $seed: $*; everything is in $scratch" >&2
  exit 1
}

# calibrate OUTPUT: in an environment that must not matter
calibrate() {
  (umask "$(pick 022 077)" && cd "$(pick / "$scratch" "$root")" &&
    exec env LC_ALL="$(pick C C.UTF-8 POSIX)" TZ="$(pick UTC Asia/Kolkata America/Los_Angeles)" HOME="$(pick /root /nonexistent "$scratch")" \
      OMP_NUM_THREADS="$threads" nice "$programs/oscar-calibrate" "$model" --device cpu -o "$1" "${options[@]}" >>"$scratch/log" 2>&1)
}

same() { # A B [THREADS OTHER_THREADS] : all files but timings.json; with other threads scores differ in their last digits
  local others=()
  [ "${3:-}" = "${4:-}" ] || others=(--exclude=report.* --exclude=manifest.json --exclude=README.md)
  diff -r --exclude=timings.json "${others[@]}" --brief "$1" "$2" || fail "$1 and $2 differ"
}

for ((round = 0; round < rounds; ++round, ++seed)); do
  RANDOM=$((seed % 32768))
  rm -rf "${scratch:?}"/{whole,cut,zoo,pulled,log}
  model=$(pick "${models[@]}") threads=$(pick 1 2)
  options=(--tokens "$(pick 1200 1500 2200)" --max-sequence "$(pick 300 400)" --min-tokens 1 --error-rows "$(pick 4 8)"
    --value-target "$(pick attention_output diagonal)")
  [ "$(pick 0 1)" = 1 ] && options+=(--no-auto)
  begin=$SECONDS
  calibrate "$scratch/whole" || fail "oscar-calibrate failed"
  took=$((SECONDS - begin + 1))
  kills=0 whole_threads=$threads threads=$(pick 1 2)
  while [ ! -e "$scratch/cut" ]; do
    calibrate "$scratch/cut" &
    child=$!
    if [ $kills -lt 8 ]; then
      sleep "$((RANDOM % took)).$((RANDOM % 10))"
      pkill -KILL -P $child 2>/dev/null || kill -KILL $child 2>/dev/null || true
      kills=$((kills + 1))
    fi
    wait $child || [ $kills -lt 8 ] || [ -e "$scratch/cut" ] || fail "the resumed run failed"
  done
  same "$scratch/whole" "$scratch/cut" "$whole_threads" "$threads"
  if [ "$(pick 0 0 0 1)" = 1 ]; then
    "$programs/oscar-validate" "$scratch/cut" --model "$model" --device cpu --sequences 1 --length 1400 --needle-samples 0 --self-generate 0 \
      >>"$scratch/log" 2>&1 || fail "oscar-validate failed"
    "$programs/oscar-zoo" init "$scratch/zoo" >>"$scratch/log"
    "$programs/oscar-zoo" publish "$scratch/cut" --zoo "$scratch/zoo" --name soak/model --ungated >>"$scratch/log" 2>&1 || fail "publish failed"
    "$programs/oscar-zoo" pull soak/model --zoo "$scratch/zoo" -o "$scratch/pulled" >>"$scratch/log" 2>&1 || fail "pull failed"
    "$programs/oscar-zoo" verify --zoo "$scratch/zoo" >>"$scratch/log" 2>&1 || fail "verify failed"
    same "$scratch/cut" "$scratch/pulled"
  fi
  echo "soak: seed $seed: $kills kills, ${options[*]}, the same bytes"
done
rm -rf "$scratch"
