#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh clone to a published, validated rotation artifact: installs what is missing, builds, calibrates the bundled model on
# the CPU, measures what its rotations do to attention, publishes it to a zoo in demo/zoo, and exports what SGLang loads. The last
# line is the report's path. Trap: replaces what an earlier demo made.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/build.sh oscar-calibrate oscar-capture oscar-validate oscar-export oscar-zoo >&2
rm -rf demo/tiny-qwen3 demo/tiny-qwen3-sglang demo/zoo
mkdir -p demo
bin=build/dev/tools
$bin/oscar-calibrate tests/data/tiny-qwen3 --device cpu -o demo/tiny-qwen3
$bin/oscar-validate demo/tiny-qwen3 --model tests/data/tiny-qwen3 --device cpu \
  --sequences 2 --length 2048 --self-length 512 --needle-tasks passages --gate 'kl<=0.1,top1_agreement>=0.7'
$bin/oscar-zoo init demo/zoo
$bin/oscar-zoo publish demo/tiny-qwen3 --zoo demo/zoo --name example/tiny-qwen3 --model tests/data/tiny-qwen3
$bin/oscar-zoo verify --zoo demo/zoo
$bin/oscar-zoo ls --zoo demo/zoo
$bin/oscar-export demo/tiny-qwen3 --to sglang-oct -o demo/tiny-qwen3-sglang
echo "$PWD/demo/tiny-qwen3/report.html"
