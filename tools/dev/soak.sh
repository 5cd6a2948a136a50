#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# soak.sh [SEED [ROUNDS]]: calibrates a bundled model with random options, threads, locale, time zone, umask and home. Repeats
# this with kills or stop requests at random times, with file operations that fail once, or with a disk that becomes full, and
# resumes. Compares every byte, validates, publishes, collects garbage, pulls and verifies. Stops at the first difference and
# prints the seed of the round, which `soak.sh SEED 1` repeats. BUILD, MODELS and SCRATCH may be set; a model without a tokenizer
# reads random ids.
set -euo pipefail
seed=${1:-$(date +%s)} rounds=${2:-1000000}
root=$(cd "$(dirname "$0")/../.." && pwd)
programs=${BUILD:-$root/build/dev}/tools
faults=${programs%/tools}/tests/tools/liboscar_write_faults.so
read -ra models <<<"${MODELS:-$root/tests/data/tiny-qwen3 $(echo "$root"/tests/data/{arch,families}/*/config.json | sed 's|/config.json||g')}"
mapfile -t models < <(realpath "${models[@]}")
scratch=${SCRATCH:-$(mktemp -d)}
mkdir -p "$scratch"

# pick VALUE...: sets $picked to one of them. Trap: do not call it in $(...), where bash draws other numbers each time.
pick() {
  local n=$((RANDOM % $# + 1))
  picked=${!n}
}

# option NAME VALUE...: gives oscar-calibrate the option with one of the values
option() {
  pick "${@:2}"
  options+=("--$1" "$picked")
}

fail() {
  echo "soak: seed $seed: $*; everything is in $scratch" >&2
  exit 1
}

# start OUTPUT [VARIABLE=VALUE]...: starts a calibration, $child, with those variables and in an environment that must not matter
start() {
  local output=$1 words=("OMP_NUM_THREADS=$threads" "${@:2}") mask folder
  pick 022 077 && mask=$picked
  pick / "$scratch" "$root" && folder=$picked
  pick C C.UTF-8 POSIX && words+=("LC_ALL=$picked")
  pick UTC Asia/Kolkata America/Los_Angeles && words+=("TZ=$picked")
  pick /root /nonexistent "$scratch" && words+=("HOME=$picked")
  (umask "$mask" && cd "$folder" &&
    exec env "${words[@]}" "$programs/oscar-calibrate" "$model" --device cpu -o "$output" "${options[@]}" >>"$scratch/log" 2>&1) &
  child=$!
}

# start_struck SIGNAL|fails|full: starts a calibration into `cut` that gets the signal or the fault at a random time or call
start_struck() {
  local watched=("LD_PRELOAD=$faults" "OSCAR_FAULT_DIR=$scratch") call=$((RANDOM % 300 + 1)) later="$((RANDOM % took)).$((RANDOM % 10))"
  case $1 in
    fails) pick 4 5 28 && start "$scratch/cut" "${watched[@]}" "OSCAR_FAULT_ERRNO_AT=$call" "OSCAR_FAULT_ERRNO=$picked" ;; # EINTR, EIO, ENOSPC
    full) start "$scratch/cut" "${watched[@]}" "OSCAR_FAULT_ENOSPC_AT=$call" ;;
    *)
      start "$scratch/cut"
      sleep "$later"
      kill "-$1" $child 2>/dev/null || true
      ;;
  esac
}

same() { # A B [THREADS OTHER_THREADS]: compares all files except timings.json; with other threads, last digits of scores may differ
  local others=()
  [ "${3:-}" = "${4:-}" ] || others=(--exclude=report.* --exclude=manifest.json --exclude=README.md)
  diff -r --exclude=timings.json "${others[@]}" --brief "$1" "$2" || fail "$1 and $2 differ"
}

# random_ids FILE: writes documents of the model's token ids
random_ids() {
  python3 - "$model/config.json" "$RANDOM" >"$1" <<'END'
import json, random, sys
config = json.load(open(sys.argv[1]))
ids = config.get("text_config", config)["vocab_size"]
random.seed(int(sys.argv[2]))
for _ in range(24):
    print(json.dumps({"input_ids": [random.randrange(ids) for _ in range(random.randrange(40, 200))]}))
END
}

# publish: validates `cut`, publishes it to a zoo and pulls it
publish() {
  local zoo=(--zoo "$scratch/zoo") step
  {
    step=oscar-validate && "$programs/oscar-validate" "$scratch/cut" --model "$model" --device cpu "${measure[@]}" --needle-samples 0 --self-generate 0 &&
      step=init && "$programs/oscar-zoo" init "$scratch/zoo" &&
      step=publish && "$programs/oscar-zoo" publish "$scratch/cut" "${zoo[@]}" --name soak/model --ungated &&
      step=gc && "$programs/oscar-zoo" gc "${zoo[@]}" &&
      step=pull && "$programs/oscar-zoo" pull soak/model "${zoo[@]}" -o "$scratch/pulled" &&
      step=verify && "$programs/oscar-zoo" verify "${zoo[@]}"
  } >>"$scratch/log" 2>&1 || fail "$step failed"
  same "$scratch/cut" "$scratch/pulled"
}

for ((round = 0; round < rounds; ++round, ++seed)); do
  RANDOM=$((seed * 48271 % 32768))
  rm -rf "${scratch:?}"/*
  pick "${models[@]}" && model=$picked
  pick 1 2 && threads=$picked
  options=(--min-tokens 1)
  option tokens 1200 1500 2400 6000
  option error-rows 1 2 4 4 8 8
  option held-out 0.1 0.1 0.1 0.4
  option value-target attention_output diagonal
  option composition r_h_pbr r_h_pbr r_h h_pbr plain
  option clip search search fixed
  pick auto auto no-auto && options+=("--$picked")
  if [ "$picked" = auto ]; then
    option for any any sglang sglang-oct sglang-oct vllm llamacpp onnx
    [ "$picked" != any ] || option bits 2 2 3 5 # other runtimes store 2 bits everywhere
    option effort quick normal
    option refine 0 0 0 3
    option windows given given auto
    pick fold no-fold no-fold && options+=("--$picked")
  fi
  if [ -e "$model/tokenizer.json" ]; then
    option max-sequence 300 400 1200 6000 # few long documents, of which only the end is held out
    pick pack no-pack && options+=("--$picked")
    measure=(--sequences 1 --length 1400)
  else # short texts
    random_ids "$scratch/ids.jsonl"
    random_ids "$scratch/others.jsonl"
    option max-sequence 100 200
    options+=(--data "$scratch/ids.jsonl" --sink-tokens 16 --recent-tokens 32)
    measure=(--data "$scratch/others.jsonl" --no-pack --sequences 12 --length 200)
  fi
  begin=$SECONDS
  start "$scratch/whole"
  code=0
  wait $child || code=$?
  if [ $code = 2 ] || [ $code = 3 ]; then # options or texts that this model does not support
    echo "soak: seed $seed: $(basename "$model"): refused: ${options[*]}: $(grep -a '^error' "$scratch/log")"
    continue
  fi
  [ $code = 0 ] || fail "oscar-calibrate failed"
  took=$((SECONDS - begin + 1)) happened="" whole_threads=$threads
  pick 1 2 && threads=$picked
  for ((attempt = 0; attempt < 8; ++attempt)); do
    pick KILL KILL TERM fails full
    happened+=" $picked"
    start_struck "$picked"
    wait $child || true
    [ ! -e "$scratch/cut" ] || break
  done
  if [ ! -e "$scratch/cut" ]; then
    start "$scratch/cut"
    wait $child || fail "the resumed run failed"
  fi
  same "$scratch/whole" "$scratch/cut" "$whole_threads" "$threads"
  pick no no no yes
  if [ "$picked" = yes ]; then
    happened+=", published"
    publish
  fi
  echo "soak: seed $seed: $(basename "$model"):$happened: ${options[*]}, the same bytes"
done 2> >(grep -v 'Killed\|Terminated' >&2)
rm -rf "$scratch"
