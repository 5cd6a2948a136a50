#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds, tests and measures on a machine with a GPU; nothing is installed. LibTorch is that of the machine's own python3, or what
# CMAKE_PREFIX_PATH names. Libraries that the machine lacks may be unpacked (dpkg -x) in .gpu/root; models to calibrate are in .gpu/models.
#
#   tools/dev/gpu.sh            tests that need the GPU, and calibrations
#   tools/dev/gpu.sh cpu        the CPU tests too
#   tools/dev/gpu.sh asan       these, and once more under AddressSanitizer and UBSan
#   tools/dev/gpu.sh release    only a release build of all targets with this machine's compiler
set -uo pipefail
cd "$(dirname "$0")/../.."
export CMAKE_PREFIX_PATH="${CMAKE_PREFIX_PATH:-$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')}"
if [ -d .gpu/root ]; then
  find .gpu/root -name '*.so*' ! -name 'libsimdjson*' -delete  # links archives, except for libraries without one
  find .gpu/root -name '*.pc' -exec sed -i "s#^prefix=.*#prefix=$PWD/.gpu/root/usr#" {} +
  export PKG_CONFIG_PATH="$PWD/.gpu/root/usr/lib/x86_64-linux-gnu/pkgconfig"
  export CPLUS_INCLUDE_PATH="$PWD/.gpu/root/usr/include"
  export LIBRARY_PATH="$PWD/.gpu/root/usr/lib/x86_64-linux-gnu"
  export CMAKE_LIBRARY_PATH="$LIBRARY_PATH" CMAKE_PREFIX_PATH="$CMAKE_PREFIX_PATH:$PWD/.gpu/root/usr"
  export LD_LIBRARY_PATH="$LIBRARY_PATH:${LD_LIBRARY_PATH:-}"
fi
jobs=$(nproc)
if [ "${1:-}" = release ]; then
  set -e
  cmake --preset release
  time cmake --build --preset release -j "$jobs"
  tools/dev/check_hardening build/release/tools/oscar-{calibrate,capture,export,validate,zoo}
  exit
fi
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem --format=csv,noheader

cmake --preset cuda >/tmp/configure.log 2>&1 || { tail -30 /tmp/configure.log; exit 1; }
tail -4 /tmp/configure.log
time cmake --build --preset cuda -j "$jobs" -- -k 0 >/tmp/build.log 2>&1 || { grep -E 'error|FAILED' /tmp/build.log | head -40; exit 1; }

models=(tests/data/tiny-qwen3)
for model in .gpu/models/*; do [ -d "$model" ] && models+=("$model"); done

for model in "${models[@]}"; do
  echo "== tests on the GPU with $model"
  OSCAR_TEST_MODEL=$model build/cuda/tests/calib/oscar_gpu_test
done
build/cuda/tests/export/validate/oscar_validate_test --gtest_filter='*Gpu*'
echo "== kernels"
for program in build/cuda/tests/export/cuda/oscar_*_kernel_test build/cuda/tests/export/validate/oscar_kernel_validation_test; do
  "$program" | grep -vE '^\[ (RUN|      OK)'
done
tools/dev/sanitize_kernels.sh build/cuda
build/cuda/tools/oscar-bench all --quiet
[ -d .gpu/packs ] && OSCAR_TEST_PACKS=$PWD/.gpu/packs build/cuda/tests/export/validate/oscar_independent_test
build/cuda/tests/capture/model/oscar_model_test --gtest_filter='*Gpu*'
if [ -n "${1:-}" ]; then
  echo "== tests on the CPU"
  export OMP_NUM_THREADS=2
  ctest --test-dir build/cuda -LE gpu -j "$jobs" --timeout 500 2>&1 | tail -25
  unset OMP_NUM_THREADS
fi

for model in "${models[@]}"; do
  for dtype in bf16 f32; do
    echo "== calibrating $model in $dtype"
    out=$(mktemp -d)/artifact
    build/cuda/tools/oscar-calibrate "$model" --device cuda --dtype $dtype -o "$out"
    echo "== validating it"
    build/cuda/tools/oscar-validate "$out" --model "$model" --device cuda --dtype $dtype
  done
done

if [ "${1:-}" = asan ]; then
  echo "== AddressSanitizer and UBSan"
  cmake --preset asan >/tmp/configure.log 2>&1 || { tail -30 /tmp/configure.log; exit 1; }
  time cmake --build --preset asan -j "$jobs" -- -k 0 >/tmp/build.log 2>&1 || { grep -E 'error|FAILED' /tmp/build.log | head -40; exit 1; }
  OMP_NUM_THREADS=2 CUDA_VISIBLE_DEVICES= ctest --test-dir build/asan -LE gpu -j "$jobs" --timeout 600 --output-on-failure >/tmp/asan.log 2>&1
  grep -E 'ERROR: |runtime error' /tmp/asan.log | head -20
  tail -25 /tmp/asan.log
fi
