#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# wheel.sh [DIRECTORY [SOURCE]]: writes the wheel of oscar-kv (export/runtimes/torch) with the operators' library into DIRECTORY
# (build/wheel), or a wheel of the folder SOURCE unchanged, and prints its path. OSCAR_TORCH_LIBRARY names another library than
# that of build/dev. Builds with PYTHON or .deps/python, without a network if that has setuptools and wheel.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:-build/wheel}
library=${OSCAR_TORCH_LIBRARY:-build/dev/modules/liboscar_torch.so}
python=${PYTHON:-.deps/python/bin/python}
[ -x "$python" ] || python=python3
source=${2:-export/runtimes/torch}
if [ $# -lt 2 ] && ! [ -f "$library" ]; then
  echo "wheel: error: there is no $library; tools/build.sh builds it" >&2
  exit 1
fi

staging=$(mktemp -d)
trap 'rm -rf "$staging"' EXIT
cp -r "$source/." "$staging"
rm -rf "$staging"/*/__pycache__
[ $# -ge 2 ] || cp "$library" "$staging/oscar_kv/liboscar_torch.so"
offline=()
if "$python" -c 'import setuptools, wheel' 2>/dev/null; then offline=(--no-build-isolation --no-index); fi
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps ${offline[@]+"${offline[@]}"} --wheel-dir "$staging/wheel" \
  --config-settings="--build-option=--plat-name=linux_$(uname -m)" "$staging"
mkdir -p "$out"
cp "$staging"/wheel/oscar_kv*.whl "$out"
for wheel in "$staging"/wheel/oscar_kv*.whl; do echo "$out/$(basename "$wheel")"; done
