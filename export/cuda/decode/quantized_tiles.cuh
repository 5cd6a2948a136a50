// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A warp's share of the quantized pages: records stream through a ring in shared memory, two tiles
// at a time, and codes go from their words into the tensor cores by one AND each. Trap: the lanes
// of a warp read what other lanes copied, so every wait is followed by __syncwarp.
//
// A code masked in place is the fp16 subnormal code * 4^i * 2^-24, which mma.sync multiplies
// exactly and at full rate (reference/performance.md section 1.4, measured in section 6). 4^-i is
// folded into the query fragment (QK) or the output row (PV).
#pragma once

#include "export/cuda/decode/decode_types.cuh"
#include "export/cuda/device/mma.cuh"

namespace oscar {

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

// A lane's codes of one side of a tile as fp16 pairs for the mma.
template <int kDim, bool kAnyBits>
class CodeOperands {
 public:
  __device__ void Load(const uint8_t* planes, int lane, int bits) {
    LoadWords(planes, lane, low_);
    if constexpr (kAnyBits) {
      high_mask_ = bits == 4 ? 0x000C000CU : bits == 3 ? 0x00040004U : 0U;
      const uint8_t* high = planes + PlaneBytes(kDim, 2);
      if (bits == 4) {
        uint32_t words[PlaneWords(kDim, 2)];
        LoadWords(high, lane, words);
#pragma unroll
        for (int s = 0; s < kDim / 16; ++s)
          high_[s] = s % 2 == 0 ? words[s / 2] << 2 : words[s / 2] >> 6;
      } else if (bits == 3) {
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
  }

  // The pair of step (half, octet) of cache_format.h, times 4^(octet % 4) 2^-24.
  __device__ uint32_t Pair(int half, int octet) const {
    const int n = half * (kDim / 8) + octet;
    const uint32_t word = n % 8 < 4 ? low_[n / 8] : low_[n / 8] >> 8;
    const uint32_t pair = word & (0x00030003U << (2 * (n % 4)));
    if constexpr (kAnyBits) return pair | (high_[n / 4] & (high_mask_ << (2 * (n % 4))));
    return pair;
  }

 private:
  uint32_t low_[PlaneWords(kDim, 2)];
  uint32_t high_[kAnyBits ? kDim / 16 : 1];
  uint32_t high_mask_;
};

// Scale and zero of tokens g and g + 8.
struct TokenScales {
  float scale[2], zero[2];
};

__device__ inline TokenScales LoadScales(const uint8_t* metadata, int group, int g,
                                         MetadataType type) {
  TokenScales s;
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const int index = MetadataIndex(g + 8 * e, group);
    if (type == MetadataType::kFloat32) {
      const float2 x = reinterpret_cast<const float2*>(metadata)[index / 2];
      s.scale[e] = x.x, s.zero[e] = x.y;
    } else {
      const uint32_t x = reinterpret_cast<const uint32_t*>(metadata)[index / 2];
      s.scale[e] = __uint_as_float(x << 16), s.zero[e] = __uint_as_float(x & 0xFFFF0000U);
    }
  }
  return s;
}

// Query fragments of one unit. Shared memory holds fp16 rows already times 4^-(octet % 4).
template <class Shape>
struct QueryFragments {
  uint32_t b[Shape::kQueryInRegisters ? Shape::kK / 16 : 1][2];
  const __half* rows;  // [kUnitHeads, kQueryStride] shared
  float sums[Shape::kKeyGranules]
            [2];  // of the query over each granule, times 2^-24; heads 2t, 2t+1
  float factor;   // of scores: attention scale, log2 e and the query's exponent

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

template <class Shape>
using Softmax = RunningSoftmax<Shape::kV, Shape::kValueGranules>;

// Attends to kTiles tiles whose records lie in shared memory. Of tile i, tokens begin[i] to end[i]
// count; the rest may hold anything.
template <class Shape, int kTiles>
__device__ inline void AttendTiles(const DecodeKernelArguments& args, const uint8_t* const* records,
                                   const int* begin, const int* end,
                                   const QueryFragments<Shape>& query, int lane,
                                   Softmax<Shape>& state) {
  const CacheFormat& format = args.call.cache.format;
  const int g = lane / 4;
  constexpr int kKG = Shape::kKeyGranules, kVG = Shape::kValueGranules;
  constexpr int kKSteps = Shape::kK / 16 / kKG, kVBlocks = Shape::kV / 16 / kVG;
  const int v_codes = Shape::kAnyBits ? CodeBytes(format.k) : 4 * Shape::kK;

  float score[kTiles][4];
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    CodeOperands<Shape::kK, Shape::kAnyBits> codes;
    codes.Load(records[i], lane, format.k.bits);
    const bool whole = begin[i] <= 0 && end[i] >= kTileTokens;
#pragma unroll
    for (int n = 0; n < kKG; ++n) {
      float product[4] = {0, 0, 0, 0};
#pragma unroll
      for (int j = 0; j < kKSteps; ++j) {
        const int step = n * kKSteps + j;
        MmaF16(product, codes.Pair(0, 2 * step), codes.Pair(1, 2 * step),
               codes.Pair(0, 2 * step + 1), codes.Pair(1, 2 * step + 1),
               query.Fragment(lane, step, 0), query.Fragment(lane, step, 1));
      }
      const int group = kKG == 1 ? 0 : 32 * n / format.k.quant_group_size;
      TokenScales s = LoadScales(records[i] + args.k_metadata, group, g, format.metadata);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float x = fmaf(-s.zero[c / 2], query.sums[n][c % 2], product[c]);
        if (kKG == 1)
          score[i][c] = x * (s.scale[c / 2] * query.factor);
        else
          score[i][c] = (n == 0 ? 0.F : score[i][c]) + x * (s.scale[c / 2] * query.factor);
      }
    }
    if (args.call.rule.softcap > 0) {
#pragma unroll
      for (int c = 0; c < 4; ++c) score[i][c] = Softcapped(score[i][c], args.call.rule.softcap);
    }
    if (!whole) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int token = g + 8 * (c / 2);
        if (token < begin[i] || token >= end[i]) score[i][c] = -INFINITY;
      }
    }
  }

  // Scales of the values, and whether the reference still serves.
  TokenScales scales[kTiles][kVG];
  float largest_sigma = 0;
  float highest[2] = {-INFINITY, -INFINITY};
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
#pragma unroll
    for (int n = 0; n < kVG; ++n) {
      const int group = kVG == 1 ? 0 : 32 * n / format.v.quant_group_size;
      scales[i][n] = LoadScales(records[i] + args.v_metadata, group, g, format.metadata);
      if (begin[i] > 0 || end[i] < kTileTokens) {
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if (g + 8 * e < begin[i] || g + 8 * e >= end[i])
            scales[i][n].scale[e] = scales[i][n].zero[e] = 0;
      }
      largest_sigma = fmaxf(largest_sigma, fmaxf(scales[i][n].scale[0], scales[i][n].scale[1]));
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) highest[c % 2] = fmaxf(highest[c % 2], score[i][c]);
  }
  const bool adjust = highest[0] > state.reference[0] + kMaxRise ||
                      highest[1] > state.reference[1] + kMaxRise ||
                      largest_sigma * state.value_scale > kMaxValueScale;
  if (__any_sync(~0U, adjust)) state.Adjust(highest, largest_sigma);

#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    float p[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      p[c] = Exp2(score[i][c] - state.reference[c % 2]);
      state.sum[c % 2] += p[c];
    }
    CodeOperands<Shape::kV, Shape::kAnyBits> codes;
    codes.Load(records[i] + v_codes, lane, format.v.bits);
#pragma unroll
    for (int n = 0; n < kVG; ++n) {
      float weighted[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        weighted[c] = p[c] * (scales[i][n].scale[c / 2] * state.value_scale);
        state.zeros[n][c % 2] = fmaf(weighted[c], scales[i][n].zero[c / 2], state.zeros[n][c % 2]);
      }
      const uint32_t b0 = Transpose8x8(PackHalf2(weighted[0], weighted[1]));
      const uint32_t b1 = Transpose8x8(PackHalf2(weighted[2], weighted[3]));
#pragma unroll
      for (int j = 0; j < kVBlocks; ++j) {
        const int block = n * kVBlocks + j;
        MmaF16(state.out[block], codes.Pair(0, 2 * block), codes.Pair(0, 2 * block + 1),
               codes.Pair(1, 2 * block), codes.Pair(1, 2 * block + 1), b0, b1);
      }
    }
  }
}

// Where a warp's quantized tiles come from.
struct TileRange {
  int first, last;             // tiles of the request
  int first_token, end_token;  // quantized tokens that count
  const int32_t* pages;        // the request's row of the page table
  int head;                    // KV head
};

// ring: this warp's shared memory, kRingTiles records.
template <class Shape>
__device__ inline void AttendQuantized(const DecodeKernelArguments& args, const TileRange& range,
                                       const QueryFragments<Shape>& query, uint8_t* ring, int lane,
                                       Softmax<Shape>& state) {
  constexpr int kTiles = Shape::kStepTiles, kSteps = Shape::kRingSteps;
  constexpr int kPieces = (Shape::kMaxRecord / 16 + 31) / 32;
  const int pieces = args.record_bytes / 16;
  const int tile_mask = (1 << args.tiles_per_page_log2) - 1;
  const int num_steps = (range.last - range.first + kTiles - 1) / kTiles;
  const uint32_t ring_address = SharedAddress(ring) + 16 * lane;
  const int64_t head_offset =
      static_cast<int64_t>(range.head << args.tiles_per_page_log2) * args.record_bytes;

  int pages_base = 0, page_of_lane = 0;  // lane l holds the page of tile pages_base + l
  const auto load_pages = [&](int base) {
    pages_base = base;
    if (base + lane < range.last)
      page_of_lane = range.pages[(base + lane) >> args.tiles_per_page_log2];
  };
  load_pages(range.first);
  const auto issue = [&](int step) {
    if (step < num_steps) {
      const int first = range.first + kTiles * step;
      if (first + kTiles > pages_base + 32) load_pages(first);
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        const int tile = first + i;
        const int page = __shfl_sync(~0U, page_of_lane, tile - pages_base);
        if (tile < range.last) {
          const uint8_t* from = args.call.cache.pages + page * args.page_bytes + head_offset +
                                (tile & tile_mask) * args.record_bytes + 16 * lane;
          const uint32_t to = ring_address + (kTiles * (step % kSteps) + i) * Shape::kMaxRecord;
#pragma unroll
          for (int j = 0; j < kPieces; ++j)
            if (lane + 32 * j < pieces) CopyAsync16(to + 512 * j, from + 512 * j);
        }
      }
    }
    CopyAsyncCommit();
  };

  __syncwarp();
#pragma unroll
  for (int step = 0; step < kSteps - 1; ++step) issue(step);
  for (int step = 0; step < num_steps; ++step) {
    CopyAsyncWait<kSteps - 2>();
    __syncwarp();
    issue(step + kSteps - 1);
    const int tile = range.first + kTiles * step;
    const uint8_t* records[kTiles];
    int begin[kTiles], end[kTiles];
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      records[i] = ring + (kTiles * (step % kSteps) + i) * Shape::kMaxRecord;
      begin[i] = range.first_token - (tile + i) * kTileTokens;
      end[i] = range.end_token - (tile + i) * kTileTokens;
    }
    if (tile + kTiles <= range.last)
      AttendTiles<Shape, kTiles>(args, records, begin, end, query, lane, state);
    else
      AttendTiles<Shape, 1>(args, records, begin, end, query, lane, state);
  }
  CopyAsyncWait<0>();
}

}  // namespace oscar
