#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs compute-sanitizer on reduced sweeps of every kernel, and on planted defects, which it must find.
#
#   tools/dev/sanitize_kernels.sh BUILD_FOLDER     needs a GPU; exit status 1 if a kernel is reported or a defect is not
set -uo pipefail
tests=$1/tests/export/cuda
declare -A sweep=(
  [oscar_decode_kernel_test]='*EveryHeadDim*:*WindowsOfAnySize*:*QueryHeads*'
  # Excludes the 33rd length: racecheck does not follow __syncwarp to another lane's arrival (tools/bench/RESULTS.md).
  [oscar_write_kernel_test]='Lengths/*:Special/*:Sides/*-Lengths/*_32'
  [oscar_unpack_kernel_test]='*'  # not under initcheck: it copies whole pages to the host, including bytes that were never written
  [oscar_attention_kl_kernel_test]='*SameBits*:*NaNIn*:*Scalar*'
)
status=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for tool in memcheck racecheck initcheck synccheck; do
  compute-sanitizer --tool $tool --error-exitcode 9 "$tests/oscar_planted_defects" $tool >"$scratch/planted.$tool" 2>&1
  if [ $? = 9 ]; then echo "$tool: finds its planted defect"; else echo "$tool: MISSES its planted defect"; status=1; fi
  for program in "${!sweep[@]}"; do
    [ $tool = initcheck ] && [ "$program" = oscar_unpack_kernel_test ] && continue
    (
      more=()
      [ $tool = synccheck ] && more=(--num-cuda-barriers 131072)  # decode's CTAs have 16 each
      compute-sanitizer --tool $tool "${more[@]}" --error-exitcode 9 "$tests/$program" --gtest_filter="${sweep[$program]}" >"$scratch/$program.$tool" 2>&1
      code=$?
      tests_run=$(grep -c '^\[       OK' "$scratch/$program.$tool")
      [ $code = 0 ] && [ "$tests_run" -gt 0 ] && echo "$tool $program: no report, $tests_run tests" && exit 0
      echo "$tool $program: REPORTED or failed (exit $code, $tests_run tests passed)"
      grep -m5 -E '=========|Failure' "$scratch/$program.$tool"
      touch "$scratch/failed"
    ) &
  done
  wait
done
[ -e "$scratch/failed" ] && status=1
exit $status
