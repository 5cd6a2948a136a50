// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Types shared by the pieces of the decode kernel: the shape of one instance, and the running
// softmax of a warp. Scores are in log2 units, so that ex2 is the exponential.
#pragma once

#include "export/cuda/cache/cache_view.h"
#include "export/cuda/decode/decode_arguments.h"
#include "export/cuda/device/mma.cuh"

namespace oscar {

inline constexpr float kNoScore = -1e30F;  // the reference of a softmax over no token
inline constexpr float kLog2E = 1.44269504F;
inline constexpr int kRingStages = 2;     // stages per warp
inline constexpr int kScratchWords = 16;  // words per CTA, for example for maxima over warps
inline constexpr float kMaxRise = 8;      // log2 units: scores may exceed the reference by this
inline constexpr float kMostByteValueScale = 0x1p15F;
inline constexpr float kMaxStepSum = 512;  // limit of the sums of a step; see AttendTiles

// A row of a window tile is loaded in pieces of up to 128 dims. In shared memory, 16 bytes of
// padding put eight neighbouring rows into different banks.
constexpr int WindowPieceDims(int dim) { return dim % 128 == 0 ? 128 : dim % 96 == 0 ? 96 : 64; }
constexpr int WindowRowBytes(int dim) { return 2 * WindowPieceDims(dim) + 16; }

// The type of an instance's scales. A fast instance knows the type and the bits of keys and values
// at compile time, and has one or four scales per row. The general instance (kAny, 0 bits) gets
// them at run time. It supports any group size, because it looks up scales for every granule of 32
// dims (16 at head dim 64).
enum class ScaleType { kFloat32, kBFloat16, kByteQuarters, kFloat32Quarters, kAny };

constexpr int GranulesOf(int dim, ScaleType scales) {
  return scales == ScaleType::kByteQuarters || scales == ScaleType::kFloat32Quarters ? 4
         : scales != ScaleType::kAny                                                 ? 1
         : dim == 64                                                                 ? 4
                                                                                     : dim / 32;
}

// One compiled instance. A wide one serves units of up to 8 query heads, with one column of the mma
// per head. A narrow one serves up to 4 query heads, with two columns per head. In products with
// keys, these hold the high and the low byte of the query (narrow_keys.cuh). In products with
// values, each has half of a tile's tokens.
template <int kKeyDim, int kValueDim, int kKeyBits, int kValueBits, ScaleType kScaleType,
          bool kIsNarrow = false>
struct DecodeShape {
  static constexpr int kK = kKeyDim, kV = kValueDim, kKBits = kKeyBits, kVBits = kValueBits;
  static constexpr ScaleType kScales = kScaleType;
  static constexpr bool kGeneral = kScales == ScaleType::kAny;
  static constexpr bool kNarrow = kIsNarrow;
  static_assert(!kNarrow || (kKBits == 2 && kK % 64 == 0));
  static constexpr int kUnit = kNarrow ? kNarrowUnitHeads : kUnitHeads;  // maximum number of query
                                                                         // heads
  static constexpr int kLaneHeads = kNarrow ? 1 : 2;                     // query heads per lane
  static constexpr int kScores = 2 * kLaneHeads;  // per lane and tile: [2 tokens, kLaneHeads]
  static_assert(kGeneral == (kKBits == 0) && kGeneral == (kVBits == 0));
  static constexpr int kKeyGranules = GranulesOf(kK, kScales);
  static constexpr int kValueGranules = GranulesOf(kV, kScales);
  static constexpr bool kBytes = kScales == ScaleType::kByteQuarters;
  static constexpr bool kHalves = kBytes && kIsNarrow;  // half-precision weights and zeros, see
                                                        // AttendTiles
  // The format with the largest records; exact for a fast instance.
  static constexpr CacheFormat kFormat = {{kK, kGeneral ? 4 : kKBits, kK / kKeyGranules},
                                          {kV, kGeneral ? 4 : kVBits, kV / kValueGranules},
                                          kBytes ? MetadataType::kByte
                                          : kScales == ScaleType::kBFloat16
                                              ? MetadataType::kBFloat16
                                              : MetadataType::kFloat32};
  static constexpr int kMaxRecord = RecordBytes(kFormat);
  static constexpr int kCtasPerSm = DecodeCtasPerSm(kK, kV, kGeneral);
  // Records are loaded in stages, two of which fit into a warp's ring. A warp attends to a stage in
  // one or more steps. A piece of a window tile also takes a stage.
  static constexpr int kStageTiles = kMaxRecord <= 1408 ? 4 : kMaxRecord <= 7168 ? 2 : 1;
  static constexpr int kStepTiles = kStageTiles >= 2 ? 2 : 1;
  __host__ __device__ static constexpr int StageBytes(int record_bytes) {
    constexpr int kKeyRow = WindowRowBytes(kK), kValueRow = WindowRowBytes(kV);
    constexpr int kPiece = kTileTokens * (kKeyRow > kValueRow ? kKeyRow : kValueRow);
    return kStageTiles * record_bytes > kPiece ? kStageTiles * record_bytes : kPiece;
  }
  static constexpr int kWindowTileCost = WindowTileCost(kFormat);  // for a fast instance
  static constexpr int kQueryStride = kK + 8;  // values per row in shared memory, chosen to avoid
                                               // bank conflicts
  static constexpr int kQueryWords = kK / 16;  // per lane in a narrow instance
  static constexpr bool kQueryInRegisters = kK <= 128;
};

// The running softmax of one warp. Lane 4 g + t owns query heads 2t and 2t + 1, or head t in a
// narrow instance.
//
// A value is sigma * (code - zero). `out` sums p * sigma * 2^v * code * 4^(octet % 4) * 2^-24:
// out[b][0..1] for dimension 16 b + g, out[b][2..3] for 16 b + 8 + g. The last two factors arise
// because codes enter the mma at their place in the word, as fp16 subnormals. `zeros` sums the
// second term.
template <int kV, int kGranules, int kHeads>
struct RunningSoftmax {
  float out[kV / 16][4];
  float reference[kHeads];         // no score exceeds it by more than kMaxRise
  float sum[kHeads];               // sum of 2^(score - reference) over this lane's tokens
  float zeros[kGranules][kHeads];  // sum of p * sigma * 2^v * zero over this lane's tokens
  float value_scale;               // 2^v, which keeps p * sigma * 2^v in fp16's range

  // `largest_value_scale`: the initial value_scale, which Adjust lowers when scales need it.
  __device__ void Clear(float largest_value_scale) {
#pragma unroll
    for (int b = 0; b < kV / 16; ++b)
#pragma unroll
      for (int i = 0; i < 4; ++i) out[b][i] = 0;
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      reference[h] = kNoScore;
      sum[h] = 0;
#pragma unroll
      for (int n = 0; n < kGranules; ++n) zeros[n][h] = 0;
    }
    value_scale = largest_value_scale;
  }

  // Rescales the accumulated sums.
  __device__ void Rescale(const float (&factor)[kHeads], float value_factor) {
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      sum[h] *= factor[h];
      const float both = factor[h] * value_factor;
#pragma unroll
      for (int n = 0; n < kGranules; ++n) zeros[n][h] *= both;
#pragma unroll
      for (int b = 0; b < kV / 16; ++b)
#pragma unroll
        for (int i = h; i < 4; i += kHeads) out[b][i] *= both;
    }
  }

  // Raises each head's reference to the largest `highest` of all lanes. `sigma` is a sum of scales
  // of the lane. If sigma * value_scale exceeds 8 in any lane, lowers value_scale so that the
  // largest product is 4 to 8.
  __device__ void Adjust(const float (&highest)[kHeads], float sigma) {
    float factor[kHeads];
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      float top = highest[h];
#pragma unroll
      for (int step = 4; step < 32; step *= 2) top = fmaxf(top, __shfl_xor_sync(~0U, top, step));
      const float raised = fmaxf(reference[h], top);
      factor[h] = exp2f(reference[h] - raised);
      reference[h] = raised;
    }
#pragma unroll
    for (int step = 4; step < 32; step *= 2)
      sigma = fmaxf(sigma, __shfl_xor_sync(~0U, sigma, step));
#pragma unroll
    for (int step = 1; step < 4; step *= 2) sigma = fmaxf(sigma, __shfl_xor_sync(~0U, sigma, step));
    float value_factor = 1;
    if (sigma * value_scale > 8) {
      const int exponent = max(__float_as_int(sigma) >> 23, 4);            // biased; sigma > 0
      const float lowered = __int_as_float(max(256 - exponent, 1) << 23);  // 2^(2 - floor(log2))
      value_factor = lowered / value_scale;
      value_scale = lowered;
    }
    Rescale(factor, value_factor);
  }
};

template <class Shape>
using Softmax = RunningSoftmax<Shape::kV, Shape::kValueGranules, Shape::kLaneHeads>;

using PackPair = uint32_t(float low, float high);

// Packs the weights of the tile's tokens g and g + 8 into the halves of `pair`, for a narrow
// instance.
__device__ inline void NarrowWeightOperand(uint32_t pair, int lane, uint32_t (&b)[2]) {
  pair = Transpose8x8(pair);
  b[0] = lane & 4 ? 0 : pair, b[1] = lane & 4 ? pair : 0;
}

// Packs the weights [2 tokens, kLaneHeads] of the tile's tokens g and g + 8 as the mma's B operand.
template <class Shape, PackPair* kPack>
__device__ inline void WeightOperand(const float (&weights)[Shape::kScores], int lane,
                                     uint32_t (&b)[2]) {
  if constexpr (Shape::kNarrow) {
    NarrowWeightOperand(kPack(weights[0], weights[1]), lane, b);
  } else {
    b[0] = Transpose8x8(kPack(weights[0], weights[1]));
    b[1] = Transpose8x8(kPack(weights[2], weights[3]));
  }
}

// Loads a lane's words of a plane from shared memory.
template <int kWords>
__device__ inline void LoadWords(const uint8_t* plane, int lane, uint32_t (&words)[kWords]) {
  constexpr int kChunk = ChunkWords(kWords);
#pragma unroll
  for (int c = 0; c < kWords / kChunk; ++c) {
    const uint8_t* from = plane + WordByte(kWords, lane, c * kChunk);
    if constexpr (kChunk == 4) {
      const uint4 x = *reinterpret_cast<const uint4*>(from);
      words[4 * c] = x.x, words[4 * c + 1] = x.y, words[4 * c + 2] = x.z, words[4 * c + 3] = x.w;
    } else if constexpr (kChunk == 2) {
      const uint2 x = *reinterpret_cast<const uint2*>(from);
      words[2 * c] = x.x, words[2 * c + 1] = x.y;
    } else {
      words[c] = *reinterpret_cast<const uint32_t*>(from);
    }
  }
}

// Applies the softcap to a scaled product, for bf16 windows and quantized tiles.
__device__ inline float Softcapped(float score, float softcap) {  // `score` in log2 units
  const float cap = softcap * kLog2E;
  return softcap > 0 ? cap * tanhf(score / cap) : score;
}

}  // namespace oscar
