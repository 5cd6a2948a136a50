// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Multiplies up to 4 query heads with 2-bit keys in exact integer arithmetic. A query is scaled by
// a power of two per head and rounded to 16-bit integers. These take two 8-bit columns (high, low)
// of m16n8k32. Codes are used as bytes, four per word at a time, where fp16 would allow two.
//
// In each byte of a word, places 0 and 1 are masked in place, and 2 and 3 after one shift by 4. So
// codes at odd places are 4 times too large. With one group per row, the sum over even places is
// multiplied by 4 too, and every product is 4 times too large (kPlaceWeight). With quarters, all
// places are shifted down, and a quarter of 32 dims or fewer has the even or the odd bytes of a
// word.
//
// A lane has words [2 tokens, dim / 64], in the order of cache_format.h. Byte b, place i in word u
// of a token is dimension 8 (8 u + 4 (b % 2) + i) + 2 t + b / 2.
#pragma once

#include "export/cuda/decode/decode_types.cuh"
#include "export/cuda/device/mma.cuh"

namespace oscar {

// The query fragments of a lane, which owns head t.
template <class Shape>
struct NarrowQuery {
  uint32_t b[Shape::kNarrow ? Shape::kQueryWords : 1];  // [dim / 64, odd place, half of k]
  float sums[Shape::kKeyGranules];  // kPlaceWeight times the sum of the integers
  float factor;                     // factor of scores: attention scale, log2 e, powers of two
  static constexpr int kPlaceWeight = Shape::kKeyGranules == 1 ? 4 : 1;
};

// The places of a quarter's codes: words [first_word, last_word) of a token, the bytes of a word
// whose low bits are set in `bytes`, and places [first_place, last_place) of a byte.
struct QuarterPlaces {
  int first_word, last_word;
  uint32_t bytes;
  int first_place, last_place;
};
template <int kDim>
constexpr QuarterPlaces PlacesOfQuarter(int n) {
  if (kDim >= 256) return {n * kDim / 256, (n + 1) * kDim / 256, 0x01010101U, 0, 4};
  const uint32_t bytes = 0x00010001U << (kDim == 128 ? 8 * (n % 2) : 8 * (n / 2));
  return {kDim == 128 ? n / 2 : 0, kDim == 128 ? n / 2 + 1 : 1, bytes, kDim == 128 ? 0 : n % 2 * 2,
          kDim == 128 ? 4 : n % 2 * 2 + 2};
}
// Returns the index of the query word for a place in word u of a token.
constexpr int QueryWord(int u, int place) { return 4 * u + 2 * (place % 2) + place / 2; }

// Combines the high and the low column of a product.
__device__ inline int JoinColumns(int high, int low) { return high * 256 + low; }

// Returns how many lanes, with 8 dims each, find a maximum together: the largest power of two up to
// 32 that divides dim / 8.
constexpr int NarrowSpan(int dim) {
  int span = 1;
  while (span < 32 && dim / 8 % (2 * span) == 0) span *= 2;
  return span;
}

// Writes the unit's queries q [heads, kK] to `rows` [kNarrowUnitHeads, kQueryStride], and as
// fragments for all warps to `fragments` [kQueryWords, 32], both in shared memory. Then loads this
// lane's fragments into `query`. `scratch` has kScratchWords words. All threads must call it.
template <class Shape>
__device__ inline void PrepareNarrowQuery(const __nv_bfloat16* q, int heads, float scale,
                                          __nv_bfloat16* rows, uint32_t* fragments,
                                          uint32_t* scratch, NarrowQuery<Shape>& query) {
  constexpr int kWords = Shape::kQueryWords, kOctets = Shape::kK / 8;
  constexpr int kSpan = NarrowSpan(Shape::kK), kSpans = kOctets / kSpan;
  static_assert(kNarrowUnitHeads * kSpans <= kScratchWords);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = threadIdx.x; i < kNarrowUnitHeads * kOctets; i += 32 * kDecodeWarps) {
    uint4 x = make_uint4(0, 0, 0, 0);
    if (i / kOctets < heads) x = __ldcg(reinterpret_cast<const uint4*>(q) + i);
    *reinterpret_cast<uint4*>(rows + i / kOctets * Shape::kQueryStride + i % kOctets * 8) = x;
    // Magnitudes in bf16 have the same order as their bit patterns.
    const uint32_t pair = __vmaxu2(__vmaxu2(x.x & 0x7FFF7FFFU, x.y & 0x7FFF7FFFU),
                                   __vmaxu2(x.z & 0x7FFF7FFFU, x.w & 0x7FFF7FFFU));
    uint32_t largest = max(pair & 0xFFFFU, pair >> 16);
#pragma unroll
    for (int step = 1; step < kSpan; step *= 2)
      largest = max(largest, __shfl_xor_sync(~0U, largest, step));
    if (lane % kSpan == 0) scratch[i / kSpan] = largest;
  }
  __syncthreads();

  // The head of this lane's column. In each octet the lane has dims 8 octet + 2 t and 8 octet + 2 t
  // + 1.
  const int head = lane / 8, t = lane % 4;
  const bool low = lane & 4;
  const auto pair_at = [&](int octet) {
    return *reinterpret_cast<const uint32_t*>(rows + head * Shape::kQueryStride + 8 * octet +
                                              2 * t);
  };
  // A head's values are multiplied by power_of(exponent_of(head)) = 2^(14 - floor(log2 largest)),
  // or by 1 if the largest value is below 2^-107 or not finite.
  const auto exponent_of = [&](int of_head) {
    uint32_t largest = scratch[of_head * kSpans];
#pragma unroll
    for (int i = 1; i < kSpans; ++i) largest = max(largest, scratch[of_head * kSpans + i]);
    return static_cast<int>(largest >> 7);
  };
  const auto power_of = [](int exponent) {
    const bool usable = exponent >= 20 && exponent < 255;
    return usable ? __int_as_float((127 + 14 + 127 - exponent) << 23) : 1.F;
  };
  const float power = power_of(exponent_of(head));
  for (int word = warp; word < kWords; word += kDecodeWarps) {
    const int octet = 8 * (word / 4) + word / 2 % 2 + 2 * (word % 2);
    uint32_t bytes = 0;
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      const uint32_t pair = pair_at(octet + 4 * (b % 2));
      const float x = __uint_as_float(b < 2 ? pair << 16 : pair & 0xFFFF0000U);
      const int value = min(__float2int_rn(x * power), 32639);
      const int high = (value + 128) >> 8;
      bytes |= static_cast<uint32_t>((low ? value - 256 * high : high) & 0xFF) << (8 * b);
    }
    fragments[word * 32 + lane] = bytes;
  }
  __syncthreads();
#pragma unroll
  for (int word = 0; word < kWords; ++word) query.b[word] = fragments[word * 32 + lane];
#pragma unroll
  for (int n = 0; n < Shape::kKeyGranules; ++n) {
    int ones[4] = {0, 0, 0, 0};
    const QuarterPlaces of = Shape::kKeyGranules == 1
                                 ? QuarterPlaces{0, kWords / 4, 0x01010101U, 0, 4}
                                 : PlacesOfQuarter<Shape::kK>(n);
#pragma unroll
    for (int u = of.first_word; u < of.last_word; ++u)
#pragma unroll
      for (int i = of.first_place; i < of.last_place; i += 2)
        MmaU8S8(ones, of.bytes, of.bytes, of.bytes, of.bytes, query.b[QueryWord(u, i)],
                query.b[QueryWord(u, i + 1)]);
    query.sums[n] = static_cast<float>(query.kPlaceWeight * JoinColumns(ones[0], ones[1]));
  }
  // Biased exponents e and 254 - e belong to a power of two and its reciprocal.
  const int exponent = exponent_of(t);
  query.factor = scale * (kLog2E / query.kPlaceWeight) *
                 __int_as_float((254 << 23) - __float_as_int(power_of(exponent)));
  if (exponent == 255) query.factor = __int_as_float(0x7FC00000);
}

// Computes product[i][e] = 4 * sum(query * code) for tile i, token g + 8 e and head t.
template <class Shape, int kTiles>
__device__ inline void NarrowProducts(const uint8_t* records, const NarrowQuery<Shape>& query,
                                      int lane, float (&product)[kTiles][2]) {
  constexpr int kHalf = Shape::kK / 64;  // words per token
  uint32_t words[kTiles][2 * kHalf];
  int sums[kTiles][2][4];  // separate sums over even and odd places
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    LoadWords(records + i * Shape::kMaxRecord, lane, words[i]);
#pragma unroll
    for (int c = 0; c < 4; ++c) sums[i][0][c] = sums[i][1][c] = 0;
  }
#pragma unroll
  for (int u = 0; u < kHalf; ++u)
#pragma unroll
    for (int odd = 0; odd < 2; ++odd)
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        const uint32_t mask = 0x03030303U << (2 * odd);
        const uint32_t first = words[i][u], second = words[i][kHalf + u];
        MmaU8S8(sums[i][odd], first & mask, second & mask, first >> 4 & mask, second >> 4 & mask,
                query.b[4 * u + 2 * odd], query.b[4 * u + 2 * odd + 1]);
      }
#pragma unroll
  for (int i = 0; i < kTiles; ++i)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int high = 4 * sums[i][0][2 * e] + sums[i][1][2 * e];
      const int low = 4 * sums[i][0][2 * e + 1] + sums[i][1][2 * e + 1];
      product[i][e] = static_cast<float>(JoinColumns(high, low));
    }
}

// Computes product[i][n][e] = sum(query * code) over quarter n of the dims. If quarters share
// words, the query's bytes that belong to other quarters are masked out.
template <class Shape, int kTiles>
__device__ inline void NarrowQuarters(const uint8_t* records, const NarrowQuery<Shape>& query,
                                      int lane, float (&product)[kTiles][4][2]) {
  constexpr int kHalf = Shape::kK / 64;  // words per token
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    uint32_t words[2 * kHalf];
    LoadWords(records + i * Shape::kMaxRecord, lane, words);
    int sums[4][4] = {};
#pragma unroll
    for (int u = 0; u < kHalf; ++u)
#pragma unroll
      for (int p = 0; p < 4; p += 2) {
        const auto codes = [&](int word, int place) {
          return words[word] >> 2 * place & 0x03030303U;
        };
        const uint32_t a[4] = {codes(u, p), codes(kHalf + u, p), codes(u, p + 1),
                               codes(kHalf + u, p + 1)};
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const QuarterPlaces of = PlacesOfQuarter<Shape::kK>(n);
          if (u < of.first_word || u >= of.last_word || p < of.first_place || p >= of.last_place)
            continue;
          const uint32_t bytes = 0xFF * of.bytes;
          MmaU8S8(sums[n], a[0], a[1], a[2], a[3], query.b[QueryWord(u, p)] & bytes,
                  query.b[QueryWord(u, p + 1)] & bytes);
        }
      }
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        product[i][n][e] = static_cast<float>(JoinColumns(sums[n][2 * e], sums[n][2 * e + 1]));
  }
}

}  // namespace oscar
