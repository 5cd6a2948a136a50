// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Attends to a warp's share of the quantized pages. One AND turns a pair of 2-bit codes into an
// operand of the tensor cores. Two tiles are processed at a time, so that each hides the other's
// latencies. Tokens that do not count may hold any values, even NaN scales.
//
// A code that is masked at place i of its word is the fp16 subnormal code * 4^i * 2^-24, which
// mma.sync multiplies exactly and at full rate. The factor 4^-i is applied to the query fragment (Q
// K^T) or the output row (P V).
#pragma once

#include "export/cuda/decode/decode_types.cuh"
#include "export/cuda/decode/narrow_keys.cuh"
#include "export/cuda/decode/record_ring.cuh"
#include "export/cuda/decode/tile_scales.cuh"
#include "export/cuda/device/mma.cuh"

namespace oscar {

// A lane's codes of a tile's keys or values, as fp16 pairs for the mma. kBits 0: the bits are known
// only at run time.
template <int kDim, int kBits>
class CodeOperands {
 public:
  __device__ void Load(const uint8_t* planes, int lane, int run_time_bits) {
    const int bits = kBits == 0 ? run_time_bits : kBits;
    LoadWords(planes, lane, low_);
    const uint8_t* high = planes + PlaneBytes(kDim, 2);
    if constexpr (kBits == 2) return;
    high_mask_ = bits == 4 ? 0x000C000CU : bits == 3 ? 0x00040004U : 0U;
    if (kBits != 3 && bits == 4) {
      uint32_t words[PlaneWords(kDim, 2)];
      LoadWords(high, lane, words);
#pragma unroll
      for (int s = 0; s < kDim / 16; ++s)
        high_[s] = s % 2 == 0 ? words[s / 2] << 2 : words[s / 2] >> 6;
    } else if (kBits != 4 && bits == 3) {
      uint32_t words[PlaneWords(kDim, 1)];
      LoadWords(high, lane, words);
#pragma unroll
      for (int s = 0; s < kDim / 16; ++s) {
        const uint32_t word = words[s / 4];
        high_[s] = s % 4 == 0   ? word << 2
                   : s % 4 == 1 ? word << 1
                   : s % 4 == 2 ? word >> 6
                                : word >> 7;
      }
    } else {
#pragma unroll
      for (int s = 0; s < kDim / 16; ++s) high_[s] = 0;
    }
  }

  // Returns the pair of codes of step (half, octet) in cache_format.h, times 4^(octet % 4) * 2^-24.
  __device__ uint32_t Pair(int half, int octet) const {
    const int n = half * (kDim / 8) + octet;
    const uint32_t word = n % 8 < 4 ? low_[n / 8] : low_[n / 8] >> 8;
    const uint32_t pair = word & (0x00030003U << (2 * (n % 4)));
    if constexpr (kBits == 2) return pair;
    return pair | (high_[n / 4] & (high_mask_ << (2 * (n % 4))));
  }

 private:
  uint32_t low_[PlaneWords(kDim, 2)];
  uint32_t high_[kBits == 2 ? 1 : kDim / 16];
  uint32_t high_mask_;
};

// The query fragments of a unit. Shared memory holds fp16 rows already scaled by 4^-(octet % 4).
template <class Shape>
struct QueryFragments {
  NarrowQuery<Shape> narrow;  // a narrow instance uses only this member
  uint32_t b[Shape::kQueryInRegisters ? Shape::kK / 16 : 1][2];
  const __half* rows = nullptr;  // [kUnitHeads, kQueryStride] shared
  float sums[Shape::kKeyGranules]
            [2];  // sums of the query over each granule, times 2^-24; heads 2t, 2t+1
  float factor;   // factor of scores: attention scale, log2 e and the query's exponent

  __device__ uint32_t Fragment(int lane, int step, int part) const {
    if constexpr (Shape::kQueryInRegisters) return b[step][part];
    return Read(lane, step, part);
  }
  __device__ uint32_t Read(int lane, int step, int part) const {
    return *reinterpret_cast<const uint32_t*>(rows + lane / 4 * Shape::kQueryStride + 16 * step +
                                              8 * part + 2 * (lane % 4));
  }
  __device__ void Load(int lane) {
    if constexpr (Shape::kQueryInRegisters) {
#pragma unroll
      for (int i = 0; i < Shape::kK / 16; ++i)
        b[i][0] = Read(lane, i, 0), b[i][1] = Read(lane, i, 1);
    }
  }
};

// Computes score[i][e * kLaneHeads + h] and factor[i][e] for tile i, token g + 8 e and the lane's
// head h. The logit is score * factor. Zeros are subtracted already. Scales are part of the factor,
// or of the score if a row has several granules.
template <class Shape, int kTiles>
__device__ inline void KeyScores(const DecodeKernelArguments& args, const uint8_t* records,
                                 const QueryFragments<Shape>& query, int lane,
                                 float (&score)[kTiles][Shape::kScores],
                                 float (&factor)[kTiles][2]) {
  const CacheFormat& format = args.call.cache.format;
  const int g = lane / 4;
  constexpr int kKG = Shape::kKeyGranules, kKSteps = Shape::kK / 16 / kKG;
  const int record_bytes = Shape::kGeneral ? args.record_bytes : Shape::kMaxRecord;
  const int k_metadata = Shape::kGeneral ? args.k_metadata : KMetadataOffset(Shape::kFormat);
  const auto scales_of = [&](int i, int n) {
    return LoadScales<Shape, Shape::kK, kKG>(records + i * record_bytes + k_metadata, format.k, n,
                                             g, format.metadata);
  };
  if constexpr (Shape::kNarrow && kKG == 4) {
    float product[kTiles][4][2];
    NarrowQuarters<Shape, kTiles>(records, query.narrow, lane, product);
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      score[i][0] = score[i][1] = 0;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const TokenScales s = scales_of(i, n);
#pragma unroll
        for (int e = 0; e < 2; ++e)
          score[i][e] = fmaf(fmaf(-s.zero[e], query.narrow.sums[n], product[i][n][e]), s.scale[e],
                             score[i][e]);
      }
      factor[i][0] = factor[i][1] = query.narrow.factor;
    }
  } else if constexpr (Shape::kNarrow) {
    float product[kTiles][2];
    NarrowProducts<Shape, kTiles>(records, query.narrow, lane, product);
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      const TokenScales s = scales_of(i, 0);
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        score[i][e] = fmaf(-s.zero[e], query.narrow.sums[0], product[i][e]);
        factor[i][e] = s.scale[e] * query.narrow.factor;
      }
    }
  } else {
    CodeOperands<Shape::kK, Shape::kKBits> keys[kTiles];
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      keys[i].Load(records + i * record_bytes, lane, format.k.bits);
      factor[i][0] = factor[i][1] = query.factor;
#pragma unroll
      for (int c = 0; c < 4; ++c) score[i][c] = 0;
    }
#pragma unroll
    for (int n = 0; n < kKG; ++n) {
      float product[kTiles][2][4];  // two chains per tile, because an mma waits for the
                                    // previous one of its chain
#pragma unroll
      for (int i = 0; i < kTiles; ++i)
#pragma unroll
        for (int c = 0; c < 4; ++c) product[i][0][c] = product[i][1][c] = 0;
#pragma unroll
      for (int j = 0; j < kKSteps; ++j) {
        const int step = n * kKSteps + j;
        const uint32_t b0 = query.Fragment(lane, step, 0), b1 = query.Fragment(lane, step, 1);
#pragma unroll
        for (int i = 0; i < kTiles; ++i)
          MmaF16(product[i][j % 2], keys[i].Pair(0, 2 * step), keys[i].Pair(1, 2 * step),
                 keys[i].Pair(0, 2 * step + 1), keys[i].Pair(1, 2 * step + 1), b0, b1);
      }
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        const TokenScales s = scales_of(i, n);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const float x =
              fmaf(-s.zero[c / 2], query.sums[n][c % 2], product[i][0][c] + product[i][1][c]);
          if (kKG == 1)
            score[i][c] = x, factor[i][c / 2] = s.scale[c / 2] * query.factor;
          else
            score[i][c] = fmaf(x, s.scale[c / 2], score[i][c]);
        }
      }
    }
  }
}

// Computes the mma's B operands for granule n of a step's tiles: p times the scales of the values.
// Also sums p times scales times zeros.
template <class Shape, int kTiles>
__device__ inline void GranuleWeights(const ValueScales<Shape> (&scales)[kTiles], int n,
                                      const float (&p)[kTiles][Shape::kScores],
                                      const CacheFormat& format, int lane, Softmax<Shape>& state,
                                      uint32_t (&b)[kTiles][2]) {
  constexpr int kHeads = Shape::kLaneHeads;
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    const TokenScales s = scales[i].Of(n, format);
    float weighted[Shape::kScores];
#pragma unroll
    for (int c = 0; c < Shape::kScores; ++c) {
      const int e = c / kHeads;
      weighted[c] = p[i][c] * (s.scale[e] * state.value_scale);
      state.zeros[n][c % kHeads] = fmaf(weighted[c], s.zero[e], state.zeros[n][c % kHeads]);
    }
    WeightOperand<Shape, PackHalf2>(weighted, lane, b[i]);
  }
}

// Does what GranuleWeights does in half precision, for narrow instances with byte scales. p is
// multiplied by 32, and scales, which are at most 8 after scaling, are divided by 32. kMaxStepSum
// keeps sums below 2^16.
template <class Shape, int kTiles>
__device__ inline void GranuleWeightsInHalves(const ValueScales<Shape> (&scales)[kTiles], int n,
                                              const __half2 (&p)[kTiles], __half2 value_scale,
                                              int lane, Softmax<Shape>& state,
                                              uint32_t (&b)[kTiles][2]) {
  __half2 zeros = __float2half2_rn(0);
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    const __half2 weighted = __hmul2(p[i], __hmul2(scales[i].HalfScales(n), value_scale));
    zeros = __hfma2(weighted, scales[i].HalfZeros(n), zeros);
    NarrowWeightOperand(reinterpret_cast<const uint32_t&>(weighted), lane, b[i]);
  }
  const float2 sum = __half22float2(zeros);
  state.zeros[n][0] += sum.x + sum.y;
}

// Attends to kTiles tiles with adjacent records in shared memory. Plain tiles are complete and have
// no softcap. In other tiles only tokens [begin, end) count; the rest may hold any values.
template <class Shape, int kTiles, bool kPlain>
__device__ inline void AttendTiles(const DecodeKernelArguments& args, const uint8_t* records,
                                   int begin, int end, const QueryFragments<Shape>& query, int lane,
                                   Softmax<Shape>& state) {
  const CacheFormat& format = args.call.cache.format;
  const int g = lane / 4;
  constexpr int kVG = Shape::kValueGranules, kVBlocks = Shape::kV / 16 / kVG;
  constexpr int kHeads = Shape::kLaneHeads, kScores = Shape::kScores;
  const int record_bytes = Shape::kGeneral ? args.record_bytes : Shape::kMaxRecord;
  const int v_metadata = Shape::kGeneral ? args.v_metadata : VMetadataOffset(Shape::kFormat);
  const int v_codes = Shape::kGeneral ? CodeBytes(format.k) : VCodesOffset(Shape::kFormat);
  const auto counts = [&](int tile, int e) {
    const int token = kTileTokens * tile + g + 8 * e;
    return kPlain || (token >= begin && token < end);
  };

  // A logit is score * factor. If several granules were summed, all tokens have the same factor.
  float score[kTiles][Shape::kScores], factor[kTiles][2];
  KeyScores<Shape, kTiles>(args, records, query, lane, score, factor);
  if constexpr (!kPlain) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
#pragma unroll
      for (int c = 0; c < kScores; ++c) {
        const float x = Softcapped(score[i][c] * factor[i][c / kHeads], args.call.rule.softcap);
        score[i][c] = counts(i, c / kHeads) ? x : -INFINITY;
      }
      factor[i][0] = factor[i][1] = 1;
    }
  }

  // Loads the scales of the values. Checks whether the reference is still large enough.
  ValueScales<Shape> scales[kTiles];
  float sigmas = 0;
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    scales[i].Load(records + i * record_bytes + v_metadata, format, g, counts(i, 0), counts(i, 1));
    sigmas += scales[i].Sigma(format);
  }
  float p[kTiles][kScores], sum[kHeads];
  const auto exponentials = [&] {
#pragma unroll
    for (int h = 0; h < kHeads; ++h) sum[h] = 0;
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int c = 0; c < kScores; ++c) {
        p[i][c] = Exp2(fmaf(score[i][c], factor[i][c / kHeads], -state.reference[c % kHeads]));
        sum[c % kHeads] += p[i][c];
      }
  };
  exponentials();
  // One comparison checks all limits. If it holds, exponentials are below 2^9, and their products
  // with scaled sigmas fit into fp16.
  float largest = 4 * state.value_scale * sigmas;
#pragma unroll
  for (int h = 0; h < kHeads; ++h) largest += sum[h];
  if (__any_sync(~0U, largest > (Shape::kHalves ? kMaxStepSum / 2 : kMaxStepSum))) {
    float highest[kHeads];
#pragma unroll
    for (int h = 0; h < kHeads; ++h) highest[h] = -INFINITY;
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int c = 0; c < kScores; ++c)
        highest[c % kHeads] = fmaxf(highest[c % kHeads], score[i][c] * factor[i][c / kHeads]);
    state.Adjust(highest, sigmas);
    exponentials();
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h) state.sum[h] += sum[h];

  CodeOperands<Shape::kV, Shape::kVBits> values[kTiles];
#pragma unroll
  for (int i = 0; i < kTiles; ++i)
    values[i].Load(records + i * record_bytes + v_codes, lane, format.v.bits);
  __half2 halves[kTiles], value_scale;
  if constexpr (Shape::kHalves) {
    value_scale = __float2half2_rn(state.value_scale / 32);
#pragma unroll
    for (int i = 0; i < kTiles; ++i) halves[i] = __floats2half2_rn(32 * p[i][0], 32 * p[i][1]);
  }
#pragma unroll
  for (int n = 0; n < kVG; ++n) {
    uint32_t b[kTiles][2];
    if constexpr (Shape::kHalves)
      GranuleWeightsInHalves<Shape, kTiles>(scales, n, halves, value_scale, lane, state, b);
    else
      GranuleWeights<Shape, kTiles>(scales, n, p, format, lane, state, b);
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int j = 0; j < kVBlocks; ++j) {
        const int block = n * kVBlocks + j;
        MmaF16(state.out[block], values[i].Pair(0, 2 * block), values[i].Pair(0, 2 * block + 1),
               values[i].Pair(1, 2 * block), values[i].Pair(1, 2 * block + 1), b[i][0], b[i][1]);
      }
  }
}

// Attends to all of a warp's quantized tiles. The ring must have been started.
template <class Shape>
__device__ inline void AttendQuantized(const DecodeKernelArguments& args, const TileRange& range,
                                       const QueryFragments<Shape>& query, RecordRing<Shape>& ring,
                                       int lane, Softmax<Shape>& state) {
  constexpr int kTiles = Shape::kStepTiles;
  // Steps from plain_first to plain_last are plain: complete tiles without a softcap.
  const int plain_first = (range.first_token + kTileTokens - 1) / kTileTokens;
  const int plain_last =
      args.call.rule.softcap > 0 ? 0 : min(range.last, range.end_token / kTileTokens);
  for (; !ring.done(); ring.Release()) {
    int tile = ring.tile();
    const int stage_end = ring.end();
    const uint8_t* records = ring.Wait();
    // The loops are not unrolled: a second copy costs more instruction fetches than it saves.
    const int plain_end = tile >= plain_first ? min(stage_end, plain_last) : 0;
#pragma unroll 1
    for (; tile + kTiles <= plain_end; tile += kTiles, records += kTiles * ring.RecordBytes())
      AttendTiles<Shape, kTiles, true>(args, records, 0, 0, query, lane, state);
#pragma unroll 1
    for (; tile < stage_end; ++tile, records += ring.RecordBytes())
      AttendTiles<Shape, 1, false>(args, records, range.first_token - tile * kTileTokens,
                                   range.end_token - tile * kTileTokens, query, lane, state);
  }
}

}  // namespace oscar
