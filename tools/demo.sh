#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh clone to a published, validated rotation artifact: installs what is missing, builds, calibrates the bundled model on
# the CPU, measures what its rotations do to attention, publishes it signed to a zoo in demo/zoo, serves that as files on this machine,
# pulls and verifies it in demo/second as somebody else would, and exports what SGLang loads. The last line is the report's path.
# Trap: replaces what an earlier demo made.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/build.sh oscar-calibrate oscar-capture oscar-validate oscar-export oscar-zoo >&2
rm -rf demo/tiny-qwen3 demo/tiny-qwen3-sglang demo/zoo demo/second demo/site demo/zoo.key demo/zoo.pub
mkdir -p demo/second
bin=build/dev/tools
$bin/oscar-calibrate tests/data/tiny-qwen3 --device cpu -o demo/tiny-qwen3
$bin/oscar-validate demo/tiny-qwen3 --model tests/data/tiny-qwen3 --device cpu \
  --sequences 2 --length 2048 --self-length 512 --needle-tasks passages --gate 'kl<=0.1,top1_agreement>=0.7'
$bin/oscar-zoo init demo/zoo
$bin/oscar-zoo publish demo/tiny-qwen3 --zoo demo/zoo --name example/tiny-qwen3 --model tests/data/tiny-qwen3
$bin/oscar-zoo verify --zoo demo/zoo
$bin/oscar-zoo ls --zoo demo/zoo

# As somebody else gets it: from files behind a web server, with nothing but the publisher's public key.
openssl ecparam -name prime256v1 -genkey -noout -out demo/zoo.key
openssl ec -in demo/zoo.key -pubout -out demo/zoo.pub 2>/dev/null
$bin/oscar-zoo sign example/tiny-qwen3@0.1.0 --zoo demo/zoo --key demo/zoo.key
$bin/oscar-zoo site demo/site --zoo demo/zoo
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
python3 -m http.server "$port" --bind 127.0.0.1 --directory demo/zoo >/dev/null 2>&1 &
trap "kill $!" EXIT
$bin/oscar-zoo for tests/data/tiny-qwen3 --zoo "http://127.0.0.1:$port"
$bin/oscar-zoo pull "http://127.0.0.1:$port/example/tiny-qwen3" --public-key demo/zoo.pub -o demo/second/tiny-qwen3
$bin/oscar-zoo mirror demo/second/zoo --zoo "http://127.0.0.1:$port"
$bin/oscar-zoo verify --zoo demo/second/zoo --public-key demo/zoo.pub

$bin/oscar-export demo/tiny-qwen3 --to sglang-oct -o demo/tiny-qwen3-sglang
echo "$PWD/demo/tiny-qwen3/report.html"
