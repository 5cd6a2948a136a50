#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Compares every method on every model of a directory on equal terms. Calibrates each model with automatic choices, validates all
# methods as configs/compare.yaml says, and writes OUT/comparison: one page, one CSV, one table in Markdown. Results that OUT
# already holds are kept, so an interrupted run continues.
#
#   tools/dev/compare_methods.sh MODELS_DIR OUT [--device cuda] [--data DIR] [--models "NAME ..."] [--bits "B ..."] [--results] [OPTION OF oscar-validate ...]
#
#   --data DIR    calibrates on prompts.jsonl and measures on heldout.jsonl; default: MODELS_DIR/../calibration if it exists, otherwise
#                 the built-in texts
#   --models      directories in MODELS_DIR; default: all with a config.json or a GGUF
#   --bits        adds the automatic choice at these mean bits (oscar-calibrate --bits), as arms bits<B>:...
#   --results     puts the table into export/simulate/RESULTS.md
#
# Runs the programs in OSCAR_BIN; default: build/dev/tools, which tools/build.sh makes.
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
calibrate() { # MODEL ARTIFACT BITS: uses the clip ratios of OSCAR's authors, except for the automatic choice, which has its own
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
