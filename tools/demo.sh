#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh clone to a verified rotation artifact: installs what is missing, builds, calibrates the bundled model on the
# CPU, exports what SGLang loads. The last line is the artifact's path. Trap: replaces what an earlier demo made.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/build.sh oscar-calibrate oscar-export >&2
rm -rf demo/tiny-qwen3 demo/tiny-qwen3-sglang
mkdir -p demo
build/dev/tools/oscar-calibrate tests/data/tiny-qwen3 --device cpu -o demo/tiny-qwen3
build/dev/tools/oscar-export demo/tiny-qwen3 --to sglang -o demo/tiny-qwen3-sglang
echo "$PWD/demo/tiny-qwen3"
