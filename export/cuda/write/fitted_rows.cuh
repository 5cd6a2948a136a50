// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Fits scales (linalg/scale_fit.h) of 2-bit groups of 32 values, to be stored as bytes, for rows in
// shared memory. Each lane has a row, so it can sum a group without other lanes. Codes, and values
// in steps, are packed in bytes and multiplied four at a time. A warp uses this fast arithmetic if
// it is exact for all rows that are stored.
#pragma once

#include "export/cuda/write/feedback_rows.cuh"

namespace oscar {

inline constexpr int kFittedGroup = 32;  // values
inline constexpr float kFittedSteps = ScaleSteps(2);
inline constexpr float kMiddleCode = 1.5F;

// Returns x / scale, rounded as by one division. x is a bf16 and `inverse` is the correctly rounded
// 1 / scale. A test of all 2^23 x 128 pairs of significands found no other result
// (write_division_test.cu). Requires x = 0 or a quotient above 2^-60.
__device__ inline float DivideBf16(float x, float scale, float inverse) {
  const float q = __fmul_rn(x, inverse);
  return __fmaf_rn(__fmaf_rn(-scale, q, x), inverse, q);
}

// Whether Reciprocal(scale) is correctly rounded. Its one Newton step fails only for the largest
// significand.
__device__ inline bool HasReciprocal(float scale) {
  return (scale >= 0x1p-30F) & (scale <= 0x1p100F) &
         ((__float_as_uint(scale) & 0x7FFFFFU) != 0x7FFFFFU);
}

// Returns an integer whose last byte is the code of a value. `steps` is the value's place, x /
// scale + zero, in steps. The code changes where place + 1/2, rounded to float32, reaches 1, 2 or
// 3. `share`, which is rounded up, reaches 1/4, 1/2 or 3/4 at the same places; a test of all places
// confirms that.
__device__ inline uint32_t RaisedCode(float steps) {
  float share;  // reaches 1/4, 1/2, 3/4 exactly at code 1, 2, 3
  asm("fma.rp.sat.f32 %0, %1, %2, %3;"
      : "=f"(share)
      : "f"(steps), "f"(1 / (4 * kFittedSteps)), "f"(0.125F + 0x1p-26F));
  return __float_as_uint(__fmaf_rz(share, 4 - 0x1p-22F, 0x1p23F));
}

// Packs the last bytes of four integers.
__device__ inline uint32_t PackBytes(const uint32_t (&x)[4]) {
  return __byte_perm(__byte_perm(x[0], x[1], 0x0040), __byte_perm(x[2], x[3], 0x0040), 0x5410);
}

// Sums over a group's codes c and values q. q is in steps from the middle code, plus 128.
struct GroupSums {
  uint32_t c = 0, q = 0, squares = 0, products = 0;  // `squares`: of c or of q
};

// Sums a group. kClamped: values may be more than 127 steps from the middle code. kOfCodes:
// `squares` is the sum over codes, not over values.
template <bool kClamped, bool kOfCodes>
__device__ inline GroupSums SumGroup(const float (&x)[kFittedGroup],
                                     const AffineGroup<float>& affine) {
  constexpr uint32_t kOnes = 0x01010101U;
  const float scale = affine.scale / kFittedSteps, zero = affine.zero * kFittedSteps;
  const float inverse = Reciprocal(affine.scale) * kFittedSteps;
  GroupSums sums;
#pragma unroll
  for (int i = 0; i < kFittedGroup; i += 4) {
    uint32_t c[4], q[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float place = __fadd_rn(DivideBf16(x[i + j], scale, inverse), zero);
      float steps = __fadd_rn(place, -kMiddleCode * kFittedSteps);
      if (kClamped) steps = fminf(fmaxf(steps, -float{kMaxScaleSteps}), float{kMaxScaleSteps});
      q[j] = __float_as_uint(__fadd_rn(steps, kInteger + 128));
      c[j] = RaisedCode(place);
    }
    const uint32_t codes = PackBytes(c), values = PackBytes(q);
    const uint32_t squared = kOfCodes ? codes : values;
    sums.c = __dp4a(codes, kOnes, sums.c);
    sums.q = __dp4a(values, kOnes, sums.q);
    sums.squares = __dp4a(squared, squared, sums.squares);
    sums.products = __dp4a(codes, values, sums.products);
  }
  return sums;
}

// Does what SumGroup does, for any scale and zero. word(i) loads pair i of the group.
template <class Word>
__device__ inline GroupSums SumAnyGroup(const Word& word, const AffineGroup<float>& affine,
                                        bool of_codes) {
  GroupSums sums;
  const auto add = [&](float x) {
    const float place = __fadd_rn(__fdiv_rn(x, affine.scale), affine.zero);
    const uint32_t c = static_cast<uint32_t>(fminf(fmaxf(truncf(__fadd_rn(place, 0.5F)), 0), 3));
    const float limit = kMaxScaleSteps;
    const float steps = __fmul_rn(__fsub_rn(place, kMiddleCode), kFittedSteps);
    const auto q = static_cast<uint32_t>(rintf(fminf(fmaxf(steps, -limit), limit)) + 128);
    sums.c += c;
    sums.q += q;
    sums.squares += of_codes ? c * c : q * q;
    sums.products += c * q;
  };
#pragma unroll 1
  for (int i = 0; i < 16; ++i) {
    const uint32_t both = word(i);
    add(LowBf16(both));
    add(HighBf16(both));
  }
  return sums;
}

// Makes one step of linalg/scale_fit.h on a lane's group. `extremes`: the largest value and the
// negated smallest value. `matters`: whether the lane's row is stored and finite.
template <bool kLeastSquares, class Word>
__device__ inline AffineGroup<float> RefitGroup(const float (&x)[kFittedGroup], uint32_t extremes,
                                                const AffineGroup<float>& affine, bool matters,
                                                const Word& word) {
  const float inverse = Reciprocal(affine.scale), middle = affine.zero - kMiddleCode;
  const float low = __fmaf_rn(HighBf16(extremes), inverse, -middle);  // the negated distance
  const float high = __fmaf_rn(LowBf16(extremes), inverse, middle);
  const float furthest = fmaxf(low, high);  // largest distance of a value from the middle code
  constexpr float kLimit = kMaxScaleSteps / kFittedSteps;
  const bool divides = HasReciprocal(affine.scale);
  GroupSums sums;
  if (__all_sync(kWarp, divides & (furthest <= kLimit) & (fabsf(middle) < 256) | !matters)) {
    sums = SumGroup<false, kLeastSquares>(x, affine);
  } else if (__all_sync(kWarp,
                        divides & (furthest <= 0x1p60F) & (fabsf(middle) < 0x1p60F) | !matters)) {
    sums = SumGroup<true, kLeastSquares>(x, affine);
  } else {
    sums = SumAnyGroup(word, affine, kLeastSquares);
  }
  // Products with powers of two are exact.
  constexpr int n = kFittedGroup;
  const auto c = static_cast<int>(sums.c), q = static_cast<int>(sums.q);
  const int own = kLeastSquares ? c : q;
  const float var = __int2float_rn(n * static_cast<int>(sums.squares) - own * own);
  const float cov = __int2float_rn(n * static_cast<int>(sums.products) - c * q);
  const float divisor = kLeastSquares ? var : cov;
  const float slope =
      DivideBy(kLeastSquares ? cov : var, divisor, Reciprocal(divisor)) * (1 / kFittedSteps);
  const float mean = __fmaf_rn(__int2float_rn(q - 128 * n), 1 / (n * kFittedSteps), kMiddleCode);
  const float at_zero = __fsub_rn(mean, __fmul_rn(slope, __int2float_rn(c) * (1.0F / n)));
  const float zero = DivideBy(__fsub_rn(affine.zero, at_zero), slope, Reciprocal(slope));
  return cov > 0 ? AffineGroup<float>{__fmul_rn(affine.scale, slope), zero} : affine;
}

// Fits a lane's group, starting from the range of the clipped values and 0.
template <class Word>
__device__ inline AffineGroup<float> FitGroupOfBytes(const uint32_t (&x)[16], uint32_t extremes,
                                                     float threshold, bool matters,
                                                     const Word& word) {
  const GroupFit range = FitGroup(MaxPair(extremes, 0), threshold, MaxCode(2));
  AffineGroup<float> affine = range.affine;
  if (!__all_sync(kWarp, range.regular)) affine = FitAffineGroup(range.min, range.max, MaxCode(2));
  float values[kFittedGroup];
#pragma unroll
  for (int i = 0; i < kFittedGroup; ++i) {
    values[i] = i % 2 == 0 ? LowBf16(x[i / 2]) : HighBf16(x[i / 2]);
    asm("" : "+f"(values[i]));  // otherwise the compiler unpacks them in each step
  }
  affine = RefitGroup<true>(values, extremes, affine, matters, word);
  return RefitGroup<false>(values, extremes, affine, matters, word);
}

// Does the same as AsStored and AffineBytes for a 2-bit group in fewer instructions.
struct ByteAffine {
  AffineGroup<float> affine;
  uint32_t bytes;
};
__device__ inline ByteAffine RoundToBytes(const AffineGroup<float>& affine) {
  const float limit = kMaxScaleSteps;
  const float steps = __fmul_rn(__fsub_rn(affine.zero, kMiddleCode), kFittedSteps);
  const float raised = __fadd_rn(fminf(fmaxf(steps, -limit), limit), kInteger);
  const float scale = AsStored(affine, MetadataType::kByte, 2).scale;
  return {
      {scale, __fmaf_rn(__fsub_rn(raised, kInteger), 1 / kFittedSteps, kMiddleCode)},
      __byte_perm(__half_as_ushort(__float2half_rn(scale)) >> 7, __float_as_uint(raised), 0x1140)};
}

// Finds the smallest bf16 values with codes 1, 2 and 3 for a scale and zero of RoundToBytes, each
// in both halves of a word. Bounds between codes have few significant bits. So except at 0, no bf16
// is so close to a bound that rounding matters. A test covers all bounds.
__device__ inline void StepsOfBytes(const AffineGroup<float>& affine, uint32_t (&code)[3]) {
  constexpr float kLetThrough[3] = {0x1.7FFFFEp-25F, 0x1p-24F, 0x1p-23F};  // rounding margins
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    const uint32_t x = __float_as_uint(
        __fmul_rn(__fsub_rn(__fsub_rn(c + 0.5F, affine.zero), kLetThrough[c]), affine.scale));
    const uint32_t up = x + (0xFFFFU & ~static_cast<uint32_t>(static_cast<int>(x) >> 31));
    code[c] = __byte_perm(up, up, 0x3232);
  }
}

}  // namespace oscar
