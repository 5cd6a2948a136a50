// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Loads the scales and zeros of a tile from a record in shared memory. Lane 4 g + t holds those of
// tokens g and g + 8.
#pragma once

#include <cuda_fp16.h>

#include "export/cuda/decode/decode_types.cuh"

namespace oscar {

// Scales and zeros of tokens g and g + 8.
struct TokenScales {
  float scale[2], zero[2];
};

// Decodes four bytes: scale and zero of token g, then of token g + 8. A zero's byte becomes the low
// bits of the float 2^23, which converts it to a number of steps.
__device__ inline TokenScales ByteScales(uint32_t bytes, int bits) {
  const uint32_t halves = (bytes & 0x00FF00FFU) << 7, biased = bytes ^ 0x80008000U;
  const float2 scale = __half22float2(reinterpret_cast<const __half2&>(halves));
  const float step = 1.0F / static_cast<float>(1 << (7 - bits)),
              middle = static_cast<float>((1 << bits) - 1) / 2 - (0x1p23F + 128) * step;
  const auto zero = [&](uint32_t number) { return fmaf(__uint_as_float(number), step, middle); };
  return {{scale.x, scale.y},
          {zero(__byte_perm(biased, 0x4B000000U, 0x7441)),
           zero(__byte_perm(biased, 0x4B000000U, 0x7443))}};
}

// Loads the scales of granule `n` of kGranules, for keys or values.
template <class Shape, int kDim, int kGranules>
__device__ inline TokenScales LoadScales(const uint8_t* metadata, const PagedSide& side, int n,
                                         int g, MetadataType type) {
  if constexpr (Shape::kBytes)
    return ByteScales(reinterpret_cast<const uint32_t*>(metadata)[4 * g + n], 2);
  const int group = Shape::kGeneral ? kDim / kGranules * n / side.quant_group_size : n;
  if (Shape::kGeneral && type == MetadataType::kByte)
    return ByteScales(reinterpret_cast<const uint32_t*>(metadata)[g * GroupsPerRow(side) + group],
                      side.bits);
  const bool float32 =
      Shape::kGeneral ? type == MetadataType::kFloat32 : Shape::kScales != ScaleType::kBFloat16;
  TokenScales s;
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const int index = group * kTileTokens + g + 8 * e;
    if (float32) {
      const float2 x = reinterpret_cast<const float2*>(metadata)[index];
      s.scale[e] = x.x, s.zero[e] = x.y;
    } else {
      const uint32_t x = reinterpret_cast<const uint32_t*>(metadata)[index];
      s.scale[e] = __uint_as_float(x << 16), s.zero[e] = __uint_as_float(x & 0xFFFF0000U);
    }
  }
  return s;
}

// The scales of a tile's values, 0 for tokens that do not count. Scales of quarters stay in stored
// form until they are used, because registers are scarce.
template <class Shape>
class ValueScales {
 public:
  __device__ void Load(const uint8_t* metadata, const CacheFormat& format, int g, bool first,
                       bool second) {
    if constexpr (Shape::kBytes) {
      const uint32_t mask = (first ? 0xFFFFU : 0U) | (second ? 0xFFFF0000U : 0U);
      const uint4 x = reinterpret_cast<const uint4*>(metadata)[g];
      bytes_[0] = x.x & mask, bytes_[1] = x.y & mask, bytes_[2] = x.z & mask,
      bytes_[3] = x.w & mask;
    } else {
      metadata_ = metadata, g_ = g, counts_[0] = first, counts_[1] = second;
      if constexpr (!kLazy) {
#pragma unroll
        for (int n = 0; n < kGranules; ++n) scales_[n] = Counted(n, format);
      }
    }
  }
  __device__ TokenScales Of(int n, const CacheFormat& format) const {
    if constexpr (Shape::kBytes)
      return ByteScales(bytes_[n], 2);
    else if constexpr (kLazy)
      return Counted(n, format);
    else
      return scales_[n];
  }
  // Returns an upper bound of the scales.
  __device__ float Sigma(const CacheFormat& format) const {
    if constexpr (Shape::kBytes) {  // bytes have the same order as their scales
      const auto larger = [](uint32_t a, uint32_t b) {
        return __vmaxu2(a & 0x00FF00FFU, b & 0x00FF00FFU);
      };
      const uint32_t largest = larger(larger(bytes_[0], bytes_[1]), larger(bytes_[2], bytes_[3]))
                               << 7;
      const float2 scale = __half22float2(reinterpret_cast<const __half2&>(largest));
      return scale.x + scale.y;
    } else {
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kGranules; ++n) {
        const TokenScales s = Of(n, format);
        sum += s.scale[0] + s.scale[1];
      }
      return sum;
    }
  }

  // Returns the byte scales and zeros of both tokens as halves.
  __device__ __half2 HalfScales(int n) const {
    const uint32_t halves = (bytes_[n] & 0x00FF00FFU) << 7;
    return reinterpret_cast<const __half2&>(halves);
  }
  __device__ __half2 HalfZeros(int n) const {  // the low bits of the half 2^10 hold the steps
    const uint32_t steps = __byte_perm(bytes_[n] ^ 0x80008000U, 0x64646464U, 0x4341);
    return __hfma2(reinterpret_cast<const __half2&>(steps), __float2half2_rn(1.0F / 32),
                   __float2half2_rn(1.5F - (1024 + 128) / 32.0F));
  }

 private:
  static constexpr int kGranules = Shape::kValueGranules;
  static constexpr bool kLazy = Shape::kScales == ScaleType::kFloat32Quarters;
  __device__ TokenScales Counted(int n, const CacheFormat& format) const {
    TokenScales s =
        LoadScales<Shape, Shape::kV, kGranules>(metadata_, format.v, n, g_, format.metadata);
#pragma unroll
    for (int e = 0; e < 2; ++e)
      if (!counts_[e]) s.scale[e] = s.zero[e] = 0;
    return s;
  }

  TokenScales scales_[Shape::kBytes || kLazy ? 1 : kGranules];
  uint32_t bytes_[Shape::kBytes ? 4 : 1];
  const uint8_t* metadata_;
  int g_;
  bool counts_[2];
};

}  // namespace oscar
