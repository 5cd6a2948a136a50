// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Codes of a tile in registers. Two bits: code(x) = clamp(trunc(x / scale + zero + 0.5), 0, 3) does
// not fall as x grows, and so neither does the code that the two top bits of u = fma(x, slope,
// offset) spell (u < -2, < 0, < 2, the rest), with slope near 2 / scale and offset near 2 zero - 3.
// Both steps of a code between the same neighbouring bf16 values: then they are equal for all bf16
// values. FitLine finds those neighbours with the exact formula, six divisions a row, and an offset
// that steps there too. It may not exist (about one row in 2000 clipped ones, one in 50 unclipped),
// and then the row is divided value by value. Trap: clipped values need no clamping only because
// the smallest and largest value of the group have the codes 0 and 3, which FitLine includes.
#pragma once

#include "export/cuda/write/register_rows.cuh"

namespace oscar {

// 1 / x, correctly rounded, for x from 2^-30 to 2^100.
__device__ inline float Reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return __fmaf_rn(__fmaf_rn(-x, y, 1), y, y);
}

// x / scale rounded as one division, for such scales, and x = 0 or quotients above 2^-26 (smaller
// ones vanish beside the 0.5 that is added to them). inverse: Reciprocal(scale). The second
// quotient is off by less than one unit, and so the third is exact (Markstein, IBM J. Res. Dev. 34,
// 1990).
__device__ inline float DivideBy(float x, float scale, float inverse) {
  float q = __fmul_rn(x, inverse);
  q = __fmaf_rn(__fmaf_rn(-scale, q, x), inverse, q);
  return __fmaf_rn(__fmaf_rn(-scale, q, x), inverse, q);
}

// One quantization group of one row, after clipping.
struct GroupFit {
  AffineGroup<float> affine;
  float min, max;
  float inverse;  // of the scale
  bool regular;   // whether DivideBy serves its values
};

// extremes: the largest value and minus the smallest one, bf16. FitAffineGroup by fewer
// instructions: 3, 7 and 15 divide exactly after one correction.
__device__ inline GroupFit FitGroup(uint32_t extremes, float threshold, int max_code) {
  GroupFit fit;
  fit.max = fminf(fmaxf(LowBf16(extremes), -threshold), threshold);
  fit.min = -fminf(fmaxf(HighBf16(extremes), -threshold), threshold);
  const float range = fmaxf(__fsub_rn(fit.max, fit.min), kMinAffineRange);
  const float codes = static_cast<float>(max_code);
  const float inverse_codes = max_code == 3 ? 1.0F / 3 : max_code == 7 ? 1.0F / 7 : 1.0F / 15;
  const float q = __fmul_rn(range, inverse_codes);
  const float scale = __fmaf_rn(__fmaf_rn(-codes, q, range), inverse_codes, q);
  fit.inverse = Reciprocal(scale);
  float zero = DivideBy(-fit.min, scale, fit.inverse);
  fit.regular = (scale < 0x1p100F) &
                ((fit.min == 0) | ((fabsf(fit.min) > 0x1p-100F) & (fabsf(zero) > 0x1p-90F)));
  if (!__all_sync(kWarp, fit.regular)) zero = __fdiv_rn(-fit.min, scale);
  fit.affine = {scale, zero};
  return fit;
}

__device__ inline float CodeSum(float x, const GroupFit& fit) {  // AffineCodeSum
  return __fadd_rn(__fadd_rn(DivideBy(x, fit.affine.scale, fit.inverse), fit.affine.zero), 0.5F);
}

// u of the file's comment is fma(x, slope, offset).
struct TwoBitLine {
  float slope, offset;
  bool exact;
};
__device__ inline uint32_t TwoBitCode(uint32_t top_bits) {  // of one u or of words of many
  return top_bits ^ (top_bits >> 1 & 0x55555555U) ^ 0xAAAAAAAAU;
}

// 2 / scale, with slope * scale / 2 - 1 from -3/4 to 1/4 of 2^-23: then a row that is symmetric
// around 0, as clipped rows are, can step where u is -2 and 2 although u is rounded.
__device__ inline float SlopeOf(const GroupFit& fit) {
  const bool high = __fmaf_rn(fit.affine.scale, fit.inverse, -1) > 0x1p-25F;
  return 2 * __uint_as_float(__float_as_uint(fit.inverse) - (high ? 1 : 0));
}

// The bf16 values between which the code reaches `code`.
struct CodeStep {
  float below, reached;
  bool found;
};
// x: about there, in float32.
__device__ inline CodeStep FindStep(const GroupFit& fit, float x, float code) {
  const uint32_t bits = (__float_as_uint(x) + 0x8000U) & 0xFFFF0000U;
  const float nearest = __uint_as_float(bits);
  const bool reached = CodeSum(nearest, fit) >= code;
  const bool away = ((bits >> 31) != 0) == reached;  // from 0
  const float other = __uint_as_float(away ? bits + 0x10000U : bits - 0x10000U);
  const bool other_reached = CodeSum(other, fit) >= code;
  return {reached ? other : nearest, reached ? nearest : other, reached != other_reached};
}

// The line of a group. Lanes with q = 0 and 1 look at its lower and its upper end; both get the
// line, and `exact` must hold in both.
__device__ inline TwoBitLine FitLine(const GroupFit& fit, int q) {
  const float scale = fit.affine.scale;
  const float slope = SlopeOf(fit);
  // The sum of quotient and zero is rounded, up to half a step of [1, 2).
  const float offset = __fadd_rn(__fmaf_rn(2, fit.affine.zero, -3), 0x1p-23F);
  const float level = q == 0 ? -2.0F : 2.0F;
  const CodeStep end = FindStep(fit, (level - offset) * 0.5F * scale, q == 0 ? 1.0F : 3.0F);
  const CodeStep middle = FindStep(fit, -offset * 0.5F * scale, 2);
  // Offsets with which u reaches the levels at `reached` and not at `below`, as u is rounded.
  const float margin = q == 0 ? 0x1p-24F : -0x1p-24F;
  float low =
      fmaxf(__fmul_ru(-slope, middle.reached), __fmaf_rn(-slope, end.reached, level) + margin);
  float high = fminf(__fmul_rd(-slope, middle.below),
                     __fmaf_rn(-slope, end.below, level) + (q == 0 ? 0 : margin));
  low = fmaxf(low, __shfl_xor_sync(kWarp, low, 1));
  high = fminf(high, __shfl_xor_sync(kWarp, high, 1));
  TwoBitLine line = {slope, fminf(fmaxf(offset, low), high), false};
  const auto agree = [&](const CodeStep& step, uint32_t code) {
    const auto reached = [&](float x) {
      return (TwoBitCode(__float_as_uint(__fmaf_rn(x, slope, line.offset)) >> 30) & 3) >= code;
    };
    return step.found & !reached(step.below) & reached(step.reached);
  };
  const bool inside = q == 0 ? end.below >= fit.min : end.reached <= fit.max;
  line.exact = inside & agree(end, q == 0 ? 1 : 3) & agree(middle, 2);
  return line;
}

// Lane order of K's planes: words of rows g first, then of rows g + 8.
template <int kOctets>
struct RegisterPlanes {
  uint32_t low[kOctets / 4];
  uint32_t high[kOctets / 4];  // of 3 bits the first half
};

// Codes by the lines of `kFits` groups of both rows.
template <int kOctets, int kFits>
__device__ inline void TwoBitPlanes(const RegisterRows<kOctets>& rows,
                                    const TwoBitLine (&lines)[2][kFits],
                                    uint32_t (&planes)[kOctets / 4]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int w = 0; w < kOctets / 8; ++w) {
      uint32_t word = 0;
#pragma unroll
      for (int i = 15; i >= 0; --i) {  // the last code comes to lie lowest
        const int octet = 8 * w + i % 8;
        const TwoBitLine& line = lines[h][octet * kFits / kOctets];
        const uint32_t y = rows.y[h][octet];
        const float u = __fmaf_rn(i < 8 ? LowBf16(y) : HighBf16(y), line.slope, line.offset);
        word = __funnelshift_l(__float_as_uint(u), word, 2);
      }
      planes[h * (kOctets / 8) + w] = TwoBitCode(word);
    }
  }
}

// Codes of any bits by one division a value, for good and regular rows.
template <int kOctets, int kFits>
__device__ inline void DividedPlanes(const RegisterRows<kOctets>& rows,
                                     const AffineGroup<float> (&affine)[2][kFits],
                                     const float (&threshold)[2], int bits,
                                     RegisterPlanes<kOctets>& planes) {
  const float max_code = static_cast<float>(MaxCode(bits));
#pragma unroll
  for (int i = 0; i < kOctets / 4; ++i) planes.low[i] = planes.high[i] = 0;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float inverse[kFits];
#pragma unroll
    for (int i = 0; i < kFits; ++i) inverse[i] = Reciprocal(affine[h][i].scale);
#pragma unroll
    for (int octet = 0; octet < kOctets; ++octet) {
      const int fit = octet * kFits / kOctets;
      const auto code = [&](float x) {
        const float clipped = fminf(fmaxf(x, -threshold[h]), threshold[h]);
        const float t = __fadd_rn(
            __fadd_rn(DivideBy(clipped, affine[h][fit].scale, inverse[fit]), affine[h][fit].zero),
            0.5F);
        // Cut to an integer in the low bits of 2^23 + t.
        return __float_as_uint(__fadd_rz(fminf(fmaxf(t, 0.0F), max_code), 8388608.0F));
      };
      const uint32_t pair =
          PairOf(code(LowBf16(rows.y[h][octet])), code(HighBf16(rows.y[h][octet])));
      const int n = h * kOctets + octet;
      planes.low[n / 8] |= (pair & 0x00030003U) << (2 * (n % 8));
      const int bit = n % 16 / 8 * 8 + n % 16 / 4 % 2 + 2 * (n % 4);  // of a 1-bit plane
      if (bits == 3) {
        planes.high[n / 16] |= (pair >> 2 & 0x00010001U) << bit;
      } else if (bits == 4) {
        planes.high[n / 8] |= (pair >> 2 & 0x00030003U) << (2 * (n % 8));
      }
    }
  }
}

// The same for all rows; those that are not `good` get 0. Rolled up, since it runs seldom.
template <int kOctets>
__device__ inline void ExactPlanes(const RegisterRows<kOctets>& rows,
                                   const GroupFit (&fits)[2][kOctets / 4],
                                   const float (&threshold)[2], const bool (&good)[2], int bits,
                                   RegisterPlanes<kOctets>& planes) {
  for (int i = 0; i < kOctets / 4; ++i) planes.low[i] = planes.high[i] = 0;
#pragma unroll 1
  for (int n = 0; n < 2 * kOctets; ++n) {
    const int h = n / kOctets;
    const int octet = n % kOctets;
    if (!good[h]) continue;
    const uint32_t y = rows.y[h][octet];
    const auto code = [&](float x) {
      return ExactAffineCode(fminf(fmaxf(x, -threshold[h]), threshold[h]),
                             fits[h][octet / 4].affine, MaxCode(bits));
    };
    const uint32_t pair = code(LowBf16(y)) | code(HighBf16(y)) << 16;
    planes.low[n / 8] |= (pair & 0x00030003U) << (2 * (n % 8));
    if (bits == 3)
      planes.high[n / 16] |=
          (pair >> 2 & 0x00010001U)
          << PlaceOfCode(CacheOrder::kKeys, 8 * kOctets, 1, 8 * h, 8 * octet).bit;
    if (bits == 4) planes.high[n / 8] |= (pair >> 2 & 0x00030003U) << (2 * (n % 8));
  }
}

}  // namespace oscar
