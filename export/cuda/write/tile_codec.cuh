// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A warp quantizes a tile of 16 rows in shared memory, for any dimension, bits and group, in simple
// loops. Lane 4g + t holds dims 8o + 2t and 8o + 2t + 1 of rows g and g + 8 for every octet o, as
// in an accumulator of mma.m16n8k16. K's planes have this order; V's planes are the 8 x 8
// transposes. All 32 lanes must call these functions, whichever tokens the tile holds.
#pragma once

#include "export/cuda/device/mma.cuh"
#include "export/cuda/write/affine_row.cuh"
#include "export/cuda/write/token_tiles.cuh"
#include "linalg/scale_fit.h"

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

// Counts the values of row h with a magnitude above m. Counts the whole row, not only this lane's
// values.
__device__ inline int CountAbove(const LaneRows& rows, int h, float m) {
  int count = 0;
  for (int o = 0; o < rows.octets; ++o) {
    const uint32_t word = rows.Word(h, o);
    count += (fabsf(LowBf16(word)) > m) + (fabsf(HighBf16(word)) > m);
  }
  return QuadSum(count);
}

// Returns the clip threshold of row h (percentile_clip.h), or infinity if `index` < 0. `max`: the
// row's largest magnitude.
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
  // Finds the smallest bfloat16 that at most dim - 1 - index magnitudes exceed. This is one of the
  // magnitudes.
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

// Fits scale and zero to octets [begin, end) of row h after clipping. `with_zero`: extends the
// range so that it includes 0.
__device__ inline AffineGroup<float> FitOctets(const LaneRows& rows, int h, int begin, int end,
                                               float threshold, int max_code, bool with_zero) {
  float negative_min = with_zero ? 0 : -__uint_as_float(0x7F800000U);
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

// Makes one step of linalg/scale_fit.h on the unclipped octets [begin, end) of row h.
__device__ inline AffineGroup<float> RefitOctets(const LaneRows& rows, int h, int begin, int end,
                                                 const AffineGroup<float>& affine, int bits,
                                                 bool least_squares) {
  const float max_code = static_cast<float>(MaxCode(bits)), middle = max_code / 2,
              steps = static_cast<float>(ScaleSteps(bits)), limit = kMaxScaleSteps;
  int c_sum = 0, q_sum = 0, squares = 0, products = 0;
  const auto add = [&](float x) {
    const float place = __fadd_rn(__fdiv_rn(x, affine.scale), affine.zero);
    const int c = static_cast<int>(fminf(fmaxf(truncf(__fadd_rn(place, 0.5F)), 0.0F), max_code));
    const int q = static_cast<int>(
        rintf(fminf(fmaxf(__fmul_rn(__fsub_rn(place, middle), steps), -limit), limit)));
    c_sum += c;
    q_sum += q;
    squares += least_squares ? c * c : q * q;
    products += c * q;
  };
  for (int o = begin; o < end; ++o) {
    const uint32_t word = rows.Word(h, o);
    add(LowBf16(word));
    add(HighBf16(word));
  }
  const int64_t n = 8 * (end - begin);
  CodeMoments m{QuadSum(c_sum), QuadSum(q_sum)};
  const int64_t of_squares = n * QuadSum(squares);
  m.c_var = of_squares - m.c * m.c;
  m.q_var = of_squares - m.q * m.q;
  m.cov = n * QuadSum(products) - m.c * m.q;
  if (m.cov <= 0) return affine;
  return least_squares ? Refitted(affine, m, m.cov, m.c_var, bits, static_cast<size_t>(n))
                       : Refitted(affine, m, m.q_var, m.cov, bits, static_cast<size_t>(n));
}

// Returns a mask of a plane word's bits that hold codes of `tokens`, before V's transposition.
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

// Writes this lane's words of a plane [words][32 lanes] to the record. Keeps the codes of tokens
// outside the mask `tokens`.
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

// Writes both planes of the keys or values: the low two bits, then the higher bits.
__device__ inline void StorePlanes(uint8_t* record, const SideArguments& s, const uint32_t* planes,
                                   uint32_t tokens) {
  const int dim = s.side.dim;
  StorePlane(record + s.codes_offset, planes, 2, dim, tokens, s.transposed);
  if (s.side.bits > 2)
    StorePlane(record + s.codes_offset + PlaneBytes(dim, 2), planes + 32 * PlaneWords(dim, 2),
               s.side.bits - 2, dim, tokens, s.transposed);
}

// Adds this lane's two codes of an octet of row h (the halves of `pair`) to planes that were zeroed
// before.
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

// Returns the bytes that one warp needs for its tile's fits, [16 tokens][groups].
constexpr int TileFitBytes(const PagedSide& side) {
  return kTileTokens * GroupsPerRow(side) * static_cast<int>(sizeof(AffineGroup<float>));
}

// The result of FitTileRows for rows g and g + 8 of a tile.
struct RowFits {
  float threshold[2];
  bool good[2];  // whether the row can be stored
};

// Fits the groups of all rows. Writes to `fits` the scales and zeros that determine codes: with
// `by_stored` as a reader gets them. Stores the scales and zeros of quantized tokens in the record,
// or NaN for rows that cannot be stored.
__device__ inline RowFits FitTileRows(const WriteArguments& a, const SideArguments& s,
                                      const TokenTile& tile, int head, const LaneRows& rows,
                                      bool by_stored, uint8_t* record, AffineGroup<float>* fits) {
  const int lane = static_cast<int>(threadIdx.x % 32), g = lane / 4;
  const int bits = s.side.bits, max_code = MaxCode(bits), groups = GroupsPerRow(s.side);
  const int group_octets = s.side.quant_group_size / 8;
  const MetadataType type = a.view.format.metadata;
  const bool bytes = type == MetadataType::kByte;
  const AffineGroup<float> not_storable = {__uint_as_float(0x7FC00000U), 0};
  RowFits result;
  for (int h = 0; h < 2; ++h) {
    const int t = g + 8 * h;
    float max = 0;
    bool good = true;
    for (int o = 0; o < rows.octets; ++o) {
      const uint32_t word = rows.Word(h, o);
      max = fmaxf(max, fmaxf(fabsf(LowBf16(word)), fabsf(HighBf16(word))));
      good = good && isfinite(LowBf16(word)) && isfinite(HighBf16(word));
    }
    const float threshold =
        ClipThresholdOfRow(rows, h, s.ClipIndexOf(head), a.bisect, QuadMax(max));
    const bool stored = ((tile.quantized >> t) & 1) != 0 && lane % 4 == 0;
    for (int i = 0; i < groups; ++i) {
      const int begin = i * group_octets, end = begin + group_octets;
      AffineGroup<float> rounds = FitOctets(rows, h, begin, end, threshold, max_code, bytes);
      good = IsStorable(rounds, type) && good;
      AffineGroup<float> fitted = rounds;
      if (FitsScale(s.scales, bits)) {
        rounds = RefitOctets(rows, h, begin, end, rounds, bits, true);
        fitted = RefitOctets(rows, h, begin, end, rounds, bits, false);
        if (s.scales == ScaleFit::kUnbiasedRounded) rounds = fitted;
      }
      good = IsStorable(fitted, type) && good;
      fitted = AsStored(fitted, type, bits);
      if (lane % 4 == 0) fits[t * groups + i] = by_stored || bytes ? fitted : rounds;
      if (stored) StoreAffine(record + s.metadata_offset, s.side, type, t, i, fitted);
    }
    good = QuadSum(good ? 0 : 1) == 0;
    if (!good && stored) {
      atomicAdd(a.bad_rows, 1U);
      for (int i = 0; i < groups; ++i)
        StoreAffine(record + s.metadata_offset, s.side, type, t, i, not_storable);
    }
    result.threshold[h] = threshold;
    result.good[h] = good;
  }
  __syncwarp();
  return result;
}

// Quantizes the tokens `tile.quantized` of `y` (shared memory [16][stride words]) into the record.
// `planes` and `fits` are this warp's scratch space in shared memory, of CodeBytes(side) and
// TileFitBytes(side) bytes.
__device__ inline void QuantizeTile(const WriteArguments& a, const SideArguments& s,
                                    const TokenTile& tile, int head, uint32_t* y, int stride,
                                    uint32_t* planes, AffineGroup<float>* fits) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int g = lane / 4;
  const int dim = s.side.dim, groups = GroupsPerRow(s.side);
  const int max_code = MaxCode(s.side.bits);
  const int group_octets = s.side.quant_group_size / 8;
  const LaneRows rows{y + g * stride + lane % 4, stride, dim / 8};
  uint8_t* record = TileRecord(a, tile, head);
  for (int i = lane; i < CodeBytes(s.side) / 4; i += 32) planes[i] = 0;
  const RowFits of_rows = FitTileRows(a, s, tile, head, rows, false, record, fits);
  for (int h = 0; h < 2; ++h) {
    if (!of_rows.good[h]) continue;
    // With fitted scales, the values themselves are not clipped.
    const float threshold =
        FitsScale(s.scales, s.side.bits) ? __uint_as_float(0x7F800000U) : of_rows.threshold[h];
    for (int o = 0; o < rows.octets; ++o) {
      const AffineGroup<float> affine = fits[(g + 8 * h) * groups + o / group_octets];
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
