// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Computes codes of a tile in registers. For two bits, code(x) = clamp(trunc(x / scale + zero +
// 0.5), 0, 3) does not decrease with x. So the code is the number of steps that x reaches. The
// steps are the smallest bf16 values with codes 1, 2 and 3, found with the exact formula in six
// divisions per row.
//
// Some rows have no step between their own values (constant rows) or a step at zero itself. Their
// codes are computed by one division per value. Clipped values need no clamping, because every step
// lies between the smallest and the largest value of the group.
#pragma once

#include "export/cuda/write/register_rows.cuh"

namespace oscar {

// Returns 1 / x, correctly rounded, for x from 2^-30 to 2^100.
__device__ inline float Reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return __fmaf_rn(__fmaf_rn(-x, y, 1), y, y);
}

// Returns x / scale, rounded as by one division. Requires a scale in the range of Reciprocal, and x
// = 0 or a quotient above 2^-26 (adding 0.5 absorbs smaller ones). `inverse`: Reciprocal(scale).
// The second quotient is off by less than one unit in the last place, so the third is exact
// (Markstein, IBM J. Res. Dev. 34, 1990).
__device__ inline float DivideBy(float x, float scale, float inverse) {
  float q = __fmul_rn(x, inverse);
  q = __fmaf_rn(__fmaf_rn(-scale, q, x), inverse, q);
  return __fmaf_rn(__fmaf_rn(-scale, q, x), inverse, q);
}

// The fit of one quantization group of one row, after clipping.
struct GroupFit {
  AffineGroup<float> affine;
  float min, max;
  float inverse;  // reciprocal of the scale
  bool regular;   // whether DivideBy is exact for all values
};

// Does what FitAffineGroup does, in fewer instructions: dividing by 3, 7 or 15 is exact after one
// correction. `extremes`: the largest value and the negated smallest one, bf16.
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

__device__ inline float CodeSum(float x, const GroupFit& fit) {  // matches AffineCodeSum
  return __fadd_rn(__fadd_rn(DivideBy(x, fit.affine.scale, fit.inverse), fit.affine.zero), 0.5F);
}

// Finds the smallest bf16 value with code c, where `sum` = c - 1/2. Its quotient plus zero must
// reach `sum`, minus the margin `let_through`, because two sums are rounded. The float32 estimate
// has four rounding errors, so the result is the bf16 nearest to it or the next one.
__device__ inline uint32_t FindStep(const GroupFit& fit, float sum, float let_through) {
  const float x =
      __fmul_rn(__fsub_rn(__fsub_rn(sum, fit.affine.zero), let_through), fit.affine.scale);
  const uint32_t nearest = (__float_as_uint(x) + 0x8000U) & 0xFFFF0000U;
  const bool reached = CodeSum(__uint_as_float(nearest), fit) >= sum + 0.5F;
  const uint32_t next = nearest + ((nearest >> 31) != 0 ? 0xFFFF0000U : 0x10000U);
  return reached ? nearest : next;
}

// Finds the steps of a group. In lanes with q = 0 the low half of `steps` is the pattern of code 1,
// with q = 1 that of code 3. The high half is that of code 2. Returns false if the largest value
// does not have code 3. The smallest value has code 0, because it determines `zero`.
__device__ inline bool FindSteps(const GroupFit& fit, int q, uint32_t& steps) {
  const uint32_t end = FindStep(fit, q == 0 ? 0.5F : 2.5F, q == 0 ? 0x3p-26F : 0x1p-23F);
  const uint32_t middle = FindStep(fit, 1.5F, 0x1p-24F);
  steps = __byte_perm(end, middle, 0x7632);
  return (q == 0) | (__uint_as_float(end) <= fit.max);
}

// Broadcasts the value of a row from lane (quad, 2 h) to all lanes of the quad.
__device__ inline float OfRow(float x, int h) {
  const int quad = static_cast<int>(threadIdx.x % 32) & ~3;
  return __shfl_sync(kWarp, x, quad + 2 * h);
}

// The smallest values with codes 1, 2 and 3 in a row's group, as bf16 pairs of equal values.
struct CodeSteps {
  uint32_t code[3];
};
__device__ inline CodeSteps StepsOfRow(uint32_t steps, int h) {
  const int quad = static_cast<int>(threadIdx.x % 32) & ~3;
  const uint32_t low = __shfl_sync(kWarp, steps, quad + 2 * h);
  const uint32_t high = __shfl_sync(kWarp, steps, quad + 2 * h + 1);
  return {{__byte_perm(low, low, 0x1010), __byte_perm(low, low, 0x3232),
           __byte_perm(high, high, 0x1010)}};
}

// K's planes in lane order: the words of row g, then those of row g + 8.
template <int kOctets>
struct RegisterPlanes {
  uint32_t low[kOctets / 4];
  uint32_t high[kOctets / 4];  // only the first half is used for 3 bits
};

// Computes 2-bit codes from the steps of `kFits` groups of both rows. For a step that a pair of
// values reaches, the mask is 0xFFFF times a pair of ones and zeros, and 0xFFFF * kShift is 1 in 32
// bits. So a product adds the codes of octet n to a word, shifted to their place.
template <int kOctets, int kFits>
__device__ inline void TwoBitPlanes(const RegisterRows<kOctets>& rows,
                                    const CodeSteps (&steps)[2][kFits],
                                    uint32_t (&planes)[kOctets / 4]) {
  constexpr uint32_t kShift = 0xFFFEFFFFU;
#pragma unroll
  for (int w = 0; w < kOctets / 8; ++w) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      uint32_t word = 0;
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const int o = 8 * w + n;
        const uint32_t(&code)[3] = steps[h][o * kFits / kOctets].code;
        const uint32_t y = rows.y[h][o];
        word += (ReachMask(y, code[0]) + ReachMask(y, code[1]) + ReachMask(y, code[2])) *
                (kShift << 2 * n);
      }
      planes[h * (kOctets / 8) + w] = word;
    }
  }
}

// Computes codes of any bit width by one division per value. Requires good and regular rows.
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
        // Truncates t to an integer, which is in the low bits of 2^23 + t.
        return __float_as_uint(__fadd_rz(fminf(fmaxf(t, 0.0F), max_code), 8388608.0F));
      };
      const uint32_t pair =
          PairOf(code(LowBf16(rows.y[h][octet])), code(HighBf16(rows.y[h][octet])));
      const int n = h * kOctets + octet;
      planes.low[n / 8] |= (pair & 0x00030003U) << (2 * (n % 8));
      const int bit = n % 16 / 8 * 8 + n % 16 / 4 % 2 + 2 * (n % 4);  // place within a 1-bit plane
      if (bits == 3) {
        planes.high[n / 16] |= (pair >> 2 & 0x00010001U) << bit;
      } else if (bits == 4) {
        planes.high[n / 8] |= (pair >> 2 & 0x00030003U) << (2 * (n % 8));
      }
    }
  }
}

// Computes all rows with exact divisions. Rows that are not `good` get codes 0. The loop is not
// unrolled because it runs rarely.
template <int kOctets>
__device__ inline void ExactPlanes(const RegisterRows<kOctets>& rows,
                                   const GroupFit (&fits)[2][kOctets / 4],
                                   const float (&threshold)[2], const bool (&good)[2], int bits,
                                   RegisterPlanes<kOctets>& planes) {
  // The arrays are in memory so that rows stay in registers. They are in one struct, because
  // otherwise the compiler overlays them with other arrays, which it then keeps in memory too.
  struct {
    volatile uint32_t y[kOctets], low[kOctets / 4], high[kOctets / 4];
  } stored;
#pragma unroll
  for (int i = 0; i < kOctets / 4; ++i) {
    stored.low[i] = 0;
    stored.high[i] = 0;
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (!good[h]) continue;
#pragma unroll
    for (int octet = 0; octet < kOctets; ++octet) stored.y[octet] = rows.y[h][octet];
#pragma unroll 1
    for (int octet = 0; octet < kOctets; ++octet) {
      const int n = h * kOctets + octet;
      const uint32_t both = stored.y[octet];
      const auto code = [&](float x) {
        return ExactAffineCode(fminf(fmaxf(x, -threshold[h]), threshold[h]),
                               fits[h][octet / 4].affine, MaxCode(bits));
      };
      const uint32_t pair = code(LowBf16(both)) | code(HighBf16(both)) << 16;
      stored.low[n / 8] = stored.low[n / 8] | (pair & 0x00030003U) << (2 * (n % 8));
      if (bits == 3) {
        const int bit = PlaceOfCode(CacheOrder::kKeys, 8 * kOctets, 1, 8 * h, 8 * octet).bit;
        stored.high[n / 16] = stored.high[n / 16] | (pair >> 2 & 0x00010001U) << bit;
      } else if (bits == 4) {
        stored.high[n / 8] = stored.high[n / 8] | (pair >> 2 & 0x00030003U) << (2 * (n % 8));
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kOctets / 4; ++i) {
    planes.low[i] = stored.low[i];
    planes.high[i] = stored.high[i];
  }
}

}  // namespace oscar
