#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Sets up, configures and builds the one build tree (preset dev, build/dev) that demo.sh and test.sh share. Arguments are targets;
# without any, builds everything. Environment variables: OSCAR_CUDA_ARCHITECTURES selects the architectures for which a fresh tree
# compiles kernels, OSCAR_PRESET another preset, and OSCAR_TORCH the place where its programs find LibTorch (tools/package.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

tools/setup.sh
# An existing tree keeps its configuration.
fresh=()
preset=${OSCAR_PRESET:-dev}
[ -f "build/$preset/CMakeCache.txt" ] ||
  fresh=(-DOSCAR_UNITY_BUILD=ON ${OSCAR_CUDA_ARCHITECTURES:+"-DOSCAR_CUDA_ARCHITECTURES=$OSCAR_CUDA_ARCHITECTURES"})
cmake --preset "$preset" "${fresh[@]}" ${OSCAR_TORCH:+"-DOSCAR_TORCH=$OSCAR_TORCH"}

# Compiling a unit takes up to 3 GB of memory.
memory_gb=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
jobs=$((memory_gb / 3))
[ "$jobs" -ge 1 ] || jobs=1
[ "$jobs" -le "$(nproc)" ] || jobs=$(nproc)
cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"}
