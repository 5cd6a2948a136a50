// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the fast arithmetic of the write kernels exhaustively: quotients of all significands and
// codes of all places must be those of IEEE operations.
#include <cuda_bf16.h>
#include <gtest/gtest.h>

#include "export/cuda/device/cuda_check.h"
#include "export/cuda/device/device_array.h"
#include "export/cuda/write/fitted_rows.cuh"

namespace oscar {
namespace {

constexpr unsigned kSignificands = 1U << 23;

// Counts wrong quotients, with one thread per significand of the scale. Exponents do not matter.
__global__ void CountWrongQuotients(unsigned long long* wrong, float exponent) {
  const unsigned significand = blockIdx.x * blockDim.x + threadIdx.x;
  const float scale = __uint_as_float(0x3F800000U | significand) * exponent;
  if (!HasReciprocal(scale)) return;
  const float inverse = Reciprocal(scale);
  unsigned count = inverse == __frcp_rn(scale) ? 0 : 1;
  for (int x = 128; x < 256; ++x) {
    const auto value = static_cast<float>(x);
    count += DivideBf16(value, scale, inverse) == __fdiv_rn(value, scale) ? 0 : 1;
    count += DivideBf16(-value, scale, inverse) == __fdiv_rn(-value, scale) ? 0 : 1;
  }
  if (count > 0) atomicAdd(wrong, count);
}

// Counts wrong codes, with one thread per float up to 16: the place x / scale + zero of a value.
__global__ void CountWrongCodes(unsigned long long* wrong, unsigned count) {
  const unsigned pattern = blockIdx.x * blockDim.x + threadIdx.x;
  if (pattern >= count) return;
  for (const float place : {__uint_as_float(pattern), -__uint_as_float(pattern)}) {
    const float code = fminf(fmaxf(truncf(__fadd_rn(place, 0.5F)), 0), 3);
    if ((RaisedCode(place * kFittedSteps) & 0xFFU) != static_cast<uint32_t>(code))
      atomicAdd(wrong, 1ULL);
  }
}

// Counts bounds that are not the smallest value of their code, with one thread per scale byte and
// zero.
__global__ void CountWrongSteps(unsigned long long* wrong) {
  const auto half = __ushort_as_half(static_cast<uint16_t>(blockIdx.x << 7));
  const AffineGroup<float> affine = {
      __half2float(half), kMiddleCode + (static_cast<int>(threadIdx.x) - 127) / kFittedSteps};
  uint32_t steps[3];
  StepsOfBytes(affine, steps);
  for (uint32_t c = 0; c < 3; ++c) {
    const float step = LowBf16(steps[c]);
    const uint32_t before = (steps[c] & 0xFFFFU) == 0 ? 0x8001U : steps[c] + (step < 0 ? 1 : -1);
    if (ExactAffineCode(step, affine, 3) <= c || ExactAffineCode(LowBf16(before), affine, 3) > c)
      atomicAdd(wrong, 1ULL);
  }
}

TEST(WriteDivision, IsThatOfIeeeForAllSignificands) {
  for (const float exponent : {1.0F, 0x1p-28F, 0x1p99F}) {
    DeviceArray<unsigned long long> wrong(1);
    wrong.Fill(0);
    CountWrongQuotients<<<kSignificands / 256, 256>>>(wrong.data(), exponent);
    OSCAR_CUDA_CHECK_LAUNCH("CountWrongQuotients");
    EXPECT_EQ(wrong.ToHost()[0], 0U) << exponent;
  }
}

TEST(WriteDivision, StepsOfBytesAreTheSmallestValuesOfTheirCodes) {
  DeviceArray<unsigned long long> wrong(1);
  wrong.Fill(0);
  CountWrongSteps<<<0xF8, 255>>>(wrong.data());  // scale bytes up to that of 61440
  OSCAR_CUDA_CHECK_LAUNCH("CountWrongSteps");
  EXPECT_EQ(wrong.ToHost()[0], 3U * 255);  // all bounds of scale 0, which no group has
}

TEST(WriteDivision, RaisedCodesAreThoseOfTheScalarCodec) {
  constexpr unsigned kCount = 0x41800001U;
  DeviceArray<unsigned long long> wrong(1);
  wrong.Fill(0);
  CountWrongCodes<<<(kCount + 255) / 256, 256>>>(wrong.data(), kCount);
  OSCAR_CUDA_CHECK_LAUNCH("CountWrongCodes");
  EXPECT_EQ(wrong.ToHost()[0], 0U);
}

}  // namespace
}  // namespace oscar
