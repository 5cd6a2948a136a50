#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Compares three ways to share out bits: by the next token, by attention, and equally. Prints a
# table in Markdown with the next token's KL of each plan, on text that neither the prices nor the
# plans saw. Plans are of codes (RUNTIME any, with OSCAR's windows), or of the types of a runtime's
# cache by layer. Results that OUT already holds are kept.
#
#   tools/dev/compare_allocations.sh MODELS_DIR CALIBRATION.jsonl EVALUATION.jsonl OUT RUNTIME=BITS,BITS ...     e.g. any=3,4.5 modelopt=5.5,7
#
# Calibrates on OSCAR_TOKENS (30000) with OSCAR_EFFORT (normal), measures on OSCAR_SEQUENCES (32) of
# 2,048 tokens. OSCAR_BIN is the folder of the programs (build/dev/tools), OSCAR_JOBS the number of
# models that run at once (1), with OMP_NUM_THREADS threads each. Trap: the best allocation depends
# on the text. Both texts must be of one kind, and no model may have been trained on them.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ $# -lt 5 ]; then
  grep -m1 'compare_allocations.sh MODELS_DIR' "$0" >&2
  exit 2
fi
export models=$1 calibration=$2 evaluation=$3 out=$4 bin=${OSCAR_BIN:-build/dev/tools}
export tokens=${OSCAR_TOKENS:-30000} effort=${OSCAR_EFFORT:-normal} sequences=${OSCAR_SEQUENCES:-32}
shift 4
mkdir -p "$out"

calibrate() { # NAME RUNTIME BITS ARTIFACT OPTIONS...
  [ -d "$4" ] || "$bin/oscar-calibrate" "$models/$1" --for "$2" --bits "$3" --data "$calibration" --pack --tokens "$tokens" \
    --max-sequence 2048 --effort "$effort" --dtype f32 --quiet -o "${@:4}"
}
validate() { # NAME ARTIFACT ARMS...
  [ -d "$2.validation" ] || "$bin/oscar-validate" "$2" --model "$models/$1" --data "$evaluation" --pack --sequences "$sequences" \
    --length 2048 --self-generate 0 --needle-samples 0 --rows 8 --dtype f32 --quiet --arms "${@:3}" -o "$2.validation"
}
measure() { # NAME RUNTIME BITS
  local plans=$out/$1@$2@$3
  calibrate "$1" "$2" "$3" "$plans" || return 1
  if [ "$2" != any ]; then
    validate "$1" "$plans" cache_types_next_token cache_types_attention cache_types_uniform
    return
  fi
  for by in next_token attention uniform; do
    calibrate "$1" "$2" "$3" "$plans@$by" --bits-by $by && validate "$1" "$plans@$by" bf16 auto+windows || return 1
  done
}
export -f calibrate validate measure

names=$(cd "$models" && ls -d ./*/config.json | cut -d/ -f2)
for name in $names; do
  for wanted in "$@"; do
    for bits in $(echo "${wanted#*=}" | tr , ' '); do echo "$name ${wanted%%=*} $bits"; done
  done
done | xargs -P "${OSCAR_JOBS:-1}" -L 1 bash -c 'measure "$@" >&2 || echo "$* failed" >&2' measure

python3 - "$out" <<'PYTHON'
import json, pathlib, sys


def report(*path):
    return json.loads(pathlib.Path(*path, "report.json").read_text())


def token_kl(validation, arm):
    arms = report(validation)["validation"]["arms"]
    return next(found["text"]["token_kl"]["mean"] for found in arms if found["name"] == arm)


print("| model | runtime | bits | stored | by the next token | by attention | even | the plan taken | against the best other |")
print("|---|---|---|---|---|---|---|---|---|")
for plans in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    if plans.name.count("@") != 2 or plans.suffix in (".validation", ".job"):
        continue
    model, runtime, bits = plans.name.split("@")
    serving, prices = report(plans)["serving"], ("next_token", "attention", "uniform")
    if runtime == "any":
        chosen, taken = serving["auto"], serving["auto"]["bits_by"]["price"]
        kl = {by: token_kl(f"{plans}@{by}.validation", "auto+windows") for by in prices}
    else:
        chosen, taken = serving["cache_types"], serving["cache_types"]["price"]
        kl = {by: token_kl(f"{plans}.validation", f"cache_types_{by}") for by in prices}
    other = min(kl["attention"], kl["uniform"])
    print(f"| {model} | {runtime} | {bits} | {chosen['bits_stored']:.2f} | {kl['next_token']:.4g} | {kl['attention']:.4g} "
          f"| {kl['uniform']:.4g} | {taken} | {kl[taken] / other:.3f} |")
PYTHON
