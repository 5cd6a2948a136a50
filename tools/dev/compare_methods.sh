#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Every method on every model of a directory, on equal terms: calibrates each model with automatic choices, validates all methods as
# configs/compare.yaml says, and writes OUT/comparison: one page, one CSV, one table in Markdown. What OUT holds already is kept, so
# a run that was stopped goes on.
#
#   tools/dev/compare_methods.sh MODELS_DIR OUT [--device cuda] [--data DIR] [--models "NAME ..."] [--bits "B ..."] [--results] [OPTION OF oscar-validate ...]
#
#   --data DIR    prompts.jsonl to calibrate on and heldout.jsonl to measure on; else MODELS_DIR/../calibration if it is there, else
#                 the built-in texts
#   --models      directories in MODELS_DIR; else all with a config.json or a GGUF
#   --bits        also the automatic choice at these mean bits (oscar-calibrate --bits), as arms bits<B>:...
#   --results     put the table into export/simulate/RESULTS.md
#
# Programs are those in OSCAR_BIN, else build/dev/tools, which tools/build.sh makes.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ $# -lt 2 ]; then
  grep -m1 -A1 'compare_methods.sh MODELS_DIR' "$0" >&2
  exit 2
fi
models_dir=$1 out=$2
shift 2
device=cpu data= names= all_bits= results= options=()
while [ $# -gt 0 ]; do
  case $1 in
    --device) device=$2; shift 2 ;;
    --data) data=$2; shift 2 ;;
    --models) names=$2; shift 2 ;;
    --bits) all_bits=$2; shift 2 ;;
    --results) results=export/simulate/RESULTS.md; shift ;;
    *) options+=("$1"); shift ;;
  esac
done
[ -n "$data" ] || { [ -f "$models_dir/../calibration/heldout.jsonl" ] && data=$models_dir/../calibration; } || true
[ -n "$names" ] || names=$(cd "$models_dir" && { ls -d ./*/config.json ./*/*.gguf 2>/dev/null || true; } | cut -d/ -f2 | sort -u)
[ -n "${OSCAR_BIN:-}" ] || tools/build.sh oscar-calibrate oscar-validate >&2
bin=${OSCAR_BIN:-build/dev/tools}

calibration_text=() method_text=() held_out_text=()
if [ -n "$data" ]; then
  calibration_text=(--data "$data/prompts.jsonl")
  method_text=(--method-data "$data/prompts.jsonl")
  held_out_text=(--data "$data/heldout.jsonl")
fi
mkdir -p "$out/artifacts" "$out/reports"
reports=()
calibrate() { # MODEL ARTIFACT BITS: the clip ratios of OSCAR's authors; the automatic choice brings its own
  [ -d "$2" ] ||
    "$bin/oscar-calibrate" "$1" --for any "${calibration_text[@]}" --clip fixed --clip-k 0.96 --clip-v 0.92 --device "$device" --dtype f32 \
      --bits "$3" -o "$2"
}
for name in $names; do
  model=$models_dir/$name artifact=$out/artifacts/$name report=$out/reports/$name others=()
  calibrate "$model" "$artifact" 2
  for bits in $all_bits; do
    calibrate "$model" "$artifact-$bits" "$bits"
    others+=(--other-artifact "bits$bits=$artifact-$bits")
  done
  if [ ! -d "$report" ]; then
    "$bin/oscar-validate" "$artifact" --model "$model" --config configs/compare.yaml "${held_out_text[@]}" "${method_text[@]}" "${others[@]}" \
      --device "$device" --dtype f32 "${options[@]}" -o "$report"
  fi
  reports+=("$report")
done
if [ ${#reports[@]} -gt 1 ]; then
  rm -rf "$out/comparison"
  "$bin/oscar-validate" --config configs/compare_table.yaml --combine "${reports[@]}" ${results:+--table-into "$results"} -o "$out/comparison"
fi
