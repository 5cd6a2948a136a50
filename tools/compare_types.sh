#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Types of a runtime's cache by layer, shared out by the next token, by attention and evenly: the KL of the next token of each, on
# text that neither the prices nor the plans saw, as a table in Markdown. What OUT holds already is kept.
#
#   tools/compare_types.sh MODELS_DIR DATA_DIR OUT RUNTIME=BITS,BITS ...     e.g. modelopt=5.5,7 kvtuner=3.5,5
#
# DATA_DIR has prompts.jsonl to calibrate on and heldout.jsonl to measure on. OSCAR_BIN is where the programs are (build/dev/tools),
# OSCAR_JOBS how many models are run at once (1), with OMP_NUM_THREADS threads each.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -lt 4 ]; then
  grep -m1 'compare_types.sh MODELS_DIR' "$0" >&2
  exit 2
fi
export models=$1 data=$2 out=$3 bin=${OSCAR_BIN:-build/dev/tools}
shift 3
mkdir -p "$out"

measure() { # NAME RUNTIME BITS
  local artifact=$out/$1@$2@$3
  [ -d "$artifact" ] || "$bin/oscar-calibrate" "$models/$1" --for "$2" --bits "$3" --data "$data/prompts.jsonl" --pack --tokens 8192 \
    --max-sequence 2048 --dtype f32 --quiet -o "$artifact" || return 1
  [ -d "$artifact.validation" ] || "$bin/oscar-validate" "$artifact" --model "$models/$1" --data "$data/heldout.jsonl" --pack \
    --sequences 8 --length 2048 --self-generate 0 --needle-samples 0 --rows 8 --dtype f32 --quiet \
    --arms cache_types_next_token cache_types_attention cache_types_uniform -o "$artifact.validation"
}
export -f measure

names=$(cd "$models" && ls -d ./*/config.json | cut -d/ -f2)
for name in $names; do
  for wanted in "$@"; do
    for bits in $(echo "${wanted#*=}" | tr , ' '); do echo "$name ${wanted%%=*} $bits"; done
  done
done | xargs -P "${OSCAR_JOBS:-1}" -L 1 bash -c 'measure "$@" >&2 || echo "$* failed" >&2' measure

python3 - "$out" <<'PYTHON'
import json, pathlib, sys

print("| model | runtime | bits | stored | by the next token | by attention | even | the plan taken | against the best other |")
print("|---|---|---|---|---|---|---|---|---|")
for validation in sorted(pathlib.Path(sys.argv[1]).glob("*.validation")):
    model, runtime, bits = validation.name.removesuffix(".validation").split("@")
    chosen = json.loads((validation.with_suffix("") / "report.json").read_text())["serving"]["cache_types"]
    arms = {arm["name"]: arm for arm in json.loads((validation / "report.json").read_text())["validation"]["arms"]}
    kl = {by: arms[f"cache_types_{by}"]["text"]["token_kl"]["mean"] for by in ("next_token", "attention", "uniform")}
    other = min(kl["attention"], kl["uniform"])
    print(f"| {model} | {runtime} | {bits} | {chosen['bits_stored']:.2f} | {kl['next_token']:.4g} | {kl['attention']:.4g} "
          f"| {kl['uniform']:.4g} | {chosen['price']} | {kl[chosen['price']] / other:.3f} |")
PYTHON
