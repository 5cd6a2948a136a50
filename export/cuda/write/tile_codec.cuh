// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A warp quantizes a tile of 16 rows that lies in shared memory: any dimension, bits and group, one
// plain loop after another. Lane 4g + t holds dims 8o + 2t and + 1 of rows g and g + 8 for every
// octet o, as an accumulator of mma.m16n8k16 would, which is the order of K's planes; V's planes
// are their 8 x 8 transposes. All 32 lanes must call, whatever tokens the tile holds.
#pragma once

#include "export/cuda/device/mma.cuh"
#include "export/cuda/write/affine_row.cuh"
#include "export/cuda/write/token_tiles.cuh"

namespace oscar {

inline constexpr unsigned kWarp = 0xFFFFFFFFU;

__device__ inline int QuadSum(int x) {
  x += __shfl_xor_sync(kWarp, x, 1);
  return x + __shfl_xor_sync(kWarp, x, 2);
}
__device__ inline float QuadMax(float x) {
  x = fmaxf(x, __shfl_xor_sync(kWarp, x, 1));
  return fmaxf(x, __shfl_xor_sync(kWarp, x, 2));
}

// Two rows of a tile as one lane sees them.
struct LaneRows {
  const uint32_t* words;  // this lane's word of octet 0 of row g
  int stride;             // words from a row to the next
  int octets;             // dim / 8
  __device__ uint32_t Word(int h, int octet) const { return words[8 * h * stride + 4 * octet]; }
};

// Values of row h with a magnitude above m, in the whole row.
__device__ inline int CountAbove(const LaneRows& rows, int h, float m) {
  int count = 0;
  for (int o = 0; o < rows.octets; ++o) {
    const uint32_t word = rows.Word(h, o);
    count += (fabsf(LowBf16(word)) > m) + (fabsf(HighBf16(word)) > m);
  }
  return QuadSum(count);
}

// Threshold of row h (percentile_clip.h); `index` < 0: infinity. `max`: the largest magnitude.
__device__ inline float ClipThresholdOfRow(const LaneRows& rows, int h, int index, bool bisect,
                                           float max) {
  const int dim = 8 * rows.octets;
  if (index < 0) return __uint_as_float(0x7F800000U);
  if (bisect) {
    float low = 0;
    float high = max;
    for (int step = 0; step < 32 - __clz(dim - 1); ++step) {
      const float middle = __fmul_rn(0.5F, __fadd_rn(low, high));
      (CountAbove(rows, h, middle) > dim - index ? low : high) = middle;
    }
    return high;
  }
  // The smallest bfloat16 that at most dim - 1 - index magnitudes exceed: it is one of them.
  int low = -1;
  int high = static_cast<int>(__float_as_uint(max) >> 16);
  while (__any_sync(kWarp, high - low > 1)) {
    const int middle = (low + high) >> 1;
    const bool above =
        CountAbove(rows, h, __uint_as_float(static_cast<uint32_t>(middle) << 16)) > dim - 1 - index;
    if (high - low > 1) (above ? low : high) = middle;
  }
  return __uint_as_float(static_cast<uint32_t>(high) << 16);
}

// Scale and zero of octets [begin, end) of row h, clipped.
__device__ inline AffineGroup<float> FitOctets(const LaneRows& rows, int h, int begin, int end,
                                               float threshold, int max_code) {
  float negative_min = -__uint_as_float(0x7F800000U);
  float max = negative_min;
  for (int o = begin; o < end; ++o) {
    const uint32_t word = rows.Word(h, o);
    max = fmaxf(max, fmaxf(LowBf16(word), HighBf16(word)));
    negative_min = fmaxf(negative_min, fmaxf(-LowBf16(word), -HighBf16(word)));
  }
  max = fminf(fmaxf(QuadMax(max), -threshold), threshold);
  negative_min = fminf(fmaxf(QuadMax(negative_min), -threshold), threshold);
  return FitAffineGroup(-negative_min, max, max_code);
}

// Bits of a plane word whose code belongs to a token of the mask, before V's transposition.
__device__ inline uint32_t PlaneMask(int plane_bits, int dim, int word, uint32_t tokens) {
  const int g = static_cast<int>(threadIdx.x % 32) / 4;
  uint32_t mask = 0;
  const int steps = plane_bits == 2 ? 8 : 16;
  for (int n = word * steps; n < (word + 1) * steps && n < dim / 4; ++n) {
    const int h = n >= dim / 8 ? 1 : 0;
    if ((tokens >> (g + 8 * h)) & 1) {
      const CodePlace place =
          PlaceOfCode(CacheOrder::kKeys, dim, plane_bits, 8 * h, n % (dim / 8) * 8);
      mask |= (plane_bits == 2 ? 0x00030003U : 0x00010001U) << place.bit;
    }
  }
  return mask;
}

// The planes of this lane, [words][32 lanes], to the record; tokens outside the mask keep theirs.
__device__ inline void StorePlane(uint8_t* plane, const uint32_t* words, int plane_bits, int dim,
                                  uint32_t tokens, bool transposed) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int count = PlaneWords(dim, plane_bits);
  for (int i = 0; i < count; ++i) {
    uint32_t word = words[32 * i + lane];
    if (transposed) word = Transpose8x8(word);
    auto* target = reinterpret_cast<uint32_t*>(plane + WordByte(count, lane, i));
    if (tokens != 0xFFFFU) {
      uint32_t mask = PlaneMask(plane_bits, dim, i, tokens);
      if (transposed) mask = Transpose8x8(mask);
      word = (word & mask) | (*target & ~mask);
    }
    *target = word;
  }
}

// All planes of a side: those of the low two bits, and behind them those of what is above.
__device__ inline void StorePlanes(uint8_t* record, const SideArguments& s, const uint32_t* planes,
                                   uint32_t tokens) {
  const int dim = s.side.dim;
  StorePlane(record + s.codes_offset, planes, 2, dim, tokens, s.transposed);
  if (s.side.bits > 2)
    StorePlane(record + s.codes_offset + PlaneBytes(dim, 2), planes + 32 * PlaneWords(dim, 2),
               s.side.bits - 2, dim, tokens, s.transposed);
}

// This lane's two codes of an octet of row h, in the halves of `pair`, to planes of zeros.
__device__ inline void AddCodes(uint32_t* planes, const PagedSide& side, int h, int octet,
                                uint32_t pair) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int n = h * (side.dim / 8) + octet;
  uint32_t* high_plane = planes + 32 * PlaneWords(side.dim, 2);
  planes[n / 8 * 32 + lane] |= (pair & 0x00030003U) << (2 * (n % 8));
  if (side.bits == 3)
    high_plane[n / 16 * 32 + lane] |=
        (pair >> 2 & 0x00010001U)
        << PlaceOfCode(CacheOrder::kKeys, side.dim, 1, 8 * h, 8 * octet).bit;
  if (side.bits == 4) high_plane[n / 8 * 32 + lane] |= (pair >> 2 & 0x00030003U) << (2 * (n % 8));
}

// Quantizes the tokens `tile.quantized` of `rows` (shared memory [16][stride words]) into the
// record. `planes` is scratch of this warp, CodeBytes(side) bytes of shared memory.
__device__ inline void QuantizeTile(const WriteArguments& a, const SideArguments& s,
                                    const TokenTile& tile, int head, const uint32_t* y, int stride,
                                    uint32_t* planes) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int g = lane / 4;
  const int dim = s.side.dim;
  const int max_code = MaxCode(s.side.bits);
  const int group_octets = s.side.quant_group_size / 8;
  const LaneRows rows{y + g * stride + lane % 4, stride, dim / 8};
  uint8_t* record = TileRecord(a, tile, head);
  for (int i = lane; i < CodeBytes(s.side) / 4; i += 32) planes[i] = 0;
  __syncwarp();
  const AffineGroup<float> not_storable = {__uint_as_float(0x7FC00000U), 0};
  for (int h = 0; h < 2; ++h) {
    float max = 0;
    bool good = true;
    for (int o = 0; o < rows.octets; ++o) {
      const uint32_t word = rows.Word(h, o);
      max = fmaxf(max, fmaxf(fabsf(LowBf16(word)), fabsf(HighBf16(word))));
      good = good && isfinite(LowBf16(word)) && isfinite(HighBf16(word));
    }
    const float threshold = ClipThresholdOfRow(rows, h, s.clip_index, a.bisect, QuadMax(max));
    AffineGroup<float> affine{};
    for (int o = 0; o < rows.octets; o += group_octets) {
      affine = FitOctets(rows, h, o, o + group_octets, threshold, max_code);
      good = IsStorable(affine, a.view.format.metadata) && good;
    }
    good = QuadSum(good ? 0 : 1) == 0;
    const bool stored = ((tile.quantized >> (g + 8 * h)) & 1) != 0;
    if (!good && stored && lane % 4 == 0) atomicAdd(a.bad_rows, 1U);
    for (int o = 0; o < rows.octets; ++o) {
      if (o % group_octets == 0) {
        affine = FitOctets(rows, h, o, o + group_octets, threshold, max_code);
        if (stored && lane % 4 == 0)
          StoreAffine(record + s.metadata_offset, a.view.format.metadata, g + 8 * h,
                      o / group_octets, good ? affine : not_storable);
      }
      if (!good) continue;
      const uint32_t word = rows.Word(h, o);
      const auto code = [&](float x) {
        return ExactAffineCode(fminf(fmaxf(x, -threshold), threshold), affine, max_code);
      };
      const uint32_t pair = code(LowBf16(word)) | code(HighBf16(word)) << 16;
      AddCodes(planes, s.side, h, o, pair);
    }
  }
  __syncwarp();
  StorePlanes(record, s, planes, tile.quantized);
}

}  // namespace oscar
