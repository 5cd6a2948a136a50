// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Quantizes a tile in a warp's registers into its record: clips, fits, computes codes and packs
// planes. Its result is that of QuantizeTile (tile_codec.cuh), but the dim must be known at compile
// time. The four lanes of a quad share the fits of its two rows: lanes with bit 1 clear have those
// of the first row, the others those of the second.
#pragma once

#include "export/cuda/write/register_clip.cuh"
#include "export/cuda/write/register_codes.cuh"

namespace oscar {

template <int kWords>
__device__ inline void StoreWords(uint8_t* plane, uint32_t (&words)[kWords], int plane_bits,
                                  int dim, uint32_t tokens, bool transposed) {
  constexpr int kChunk = ChunkWords(kWords);
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (transposed) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = Transpose8x8(words[i]);
  }
  if (tokens != 0xFFFFU && tokens != 0) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      uint32_t mask = PlaneMask(plane_bits, dim, i, tokens);
      if (transposed) mask = Transpose8x8(mask);
      const uint32_t old = *reinterpret_cast<const uint32_t*>(plane + WordByte(kWords, lane, i));
      words[i] = (words[i] & mask) | (old & ~mask);
    }
  }
  if (tokens == 0) return;
#pragma unroll
  for (int i = 0; i < kWords; i += kChunk) {
    uint8_t* target = plane + WordByte(kWords, lane, i);
    if constexpr (kChunk == 4) {
      *reinterpret_cast<uint4*>(target) =
          make_uint4(words[i], words[i + 1], words[i + 2], words[i + 3]);
    } else if constexpr (kChunk == 2) {
      *reinterpret_cast<uint2*>(target) = make_uint2(words[i], words[i + 1]);
    } else {
      *reinterpret_cast<uint32_t*>(target) = words[i];
    }
  }
}

// The fits of this lane's row, one for each of kFits parts, and the thresholds of both rows.
template <int kFits>
struct TileFits {
  GroupFit fits[kFits];
  float threshold[2];
  float largest;  // largest magnitude in this lane's row
  bool good;      // this lane's row can be stored
};

// This lane's largest and smallest values in the groups of both rows, separately for the even and
// the odd dims (the halves of a word).
template <int kFits>
struct LaneExtremes {
  uint32_t max[2][kFits], min[2][kFits];
};
template <int kOctets, int kFits>
__device__ inline LaneExtremes<kFits> FindExtremes(const RegisterRows<kOctets>& rows) {
  constexpr int kCount = kOctets / kFits;
  LaneExtremes<kFits> extremes;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int fit = 0; fit < kFits; ++fit) {
      const uint32_t* y = &rows.y[h][fit * kCount];
      uint32_t& max = extremes.max[h][fit] = y[0];
      uint32_t& min = extremes.min[h][fit] = y[0];
#pragma unroll
      for (int i = 1; i < kCount; ++i) {  // in sequence, because Hopper combines three at a time
        max = MaxPair(max, y[i]);
        min = MinPair(min, y[i]);
      }
    }
  }
  return extremes;
}

// Returns the largest value of a group and its negated smallest value, to all lanes of the quad.
__device__ inline uint32_t QuadExtremes(uint32_t max, uint32_t min) {
  max = MaxPair(max, SwapPair(max));
  min = NegatePair(MinPair(min, SwapPair(min)));
  uint32_t extremes = PairOf(max, min);
#pragma unroll
  for (int lane = 1; lane <= 2; lane *= 2)
    extremes = MaxPair(extremes, __shfl_xor_sync(kWarp, extremes, lane));
  return extremes;
}

// Approximates a sum for each of the two rows: over eight pieces of the row, the largest minus the
// smallest value.
template <int kFits>
__device__ inline void SumSpreads(const LaneExtremes<kFits>& extremes, float (&sum)[2]) {
  uint32_t spread[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    uint32_t max = extremes.max[h][0];
    uint32_t min = extremes.min[h][0];
#pragma unroll
    for (int fit = 1; fit < kFits; ++fit) {
      max = MaxPair(max, extremes.max[h][fit]);
      min = MinPair(min, extremes.min[h][fit]);
    }
    spread[h] = AddPair(max, NegatePair(min));
  }
  uint32_t both = AddPair(PairOf(spread[0], spread[1]), __byte_perm(spread[0], spread[1], 0x7632));
#pragma unroll
  for (int lane = 1; lane <= 2; lane *= 2) both = AddPair(both, __shfl_xor_sync(kWarp, both, lane));
  sum[0] = LowBf16(both);
  sum[1] = HighBf16(both);
}

// Finds the clip thresholds of both rows and their largest magnitudes (bit patterns). `extremes`:
// each row's largest and negated smallest value. load() returns the rows and may be called again.
template <int kOctets, int kFits, class Load>
__device__ inline void ClipRows(const WriteArguments& a, int clip_index, float clip_guess,
                                const Load& load, const RegisterRows<kOctets>& rows,
                                const LaneExtremes<kFits>& own, const uint32_t (&extremes)[2],
                                uint32_t (&largest)[2], float (&threshold)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) largest[i] = MaxPair(extremes[i], SwapPair(extremes[i])) & 0x7FFFU;
  threshold[0] = threshold[1] = __uint_as_float(0x7F800000U);
  if (clip_index < 0) return;
  if (a.bisect) {
    BisectThresholds(rows, clip_index, {LowBf16(largest[0]), LowBf16(largest[1])}, threshold);
  } else {
    float spread[2];
    SumSpreads(own, spread);
    SortThresholds(rows, load, clip_index, {spread[0] * clip_guess, spread[1] * clip_guess},
                   threshold);
  }
}

// Fits all groups of a tile. load() returns the rows and may be called twice.
template <int kOctets, bool kTwoBits, int kFits, class Load>
__device__ inline TileFits<kFits> FitTile(const WriteArguments& a, const SideArguments& s,
                                          const Load& load) {
  TileFits<kFits> tile;
  const RegisterRows<kOctets> rows = load();
  const LaneExtremes<kFits> own = FindExtremes<kOctets, kFits>(rows);
  uint32_t extremes[2][kFits];
  uint32_t all[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int fit = 0; fit < kFits; ++fit) {
      extremes[i][fit] = QuadExtremes(own.max[i][fit], own.min[i][fit]);
      all[i] = fit == 0 ? extremes[i][0] : MaxPair(all[i], extremes[i][fit]);
    }
    if (kFits > 1 && s.side.quant_group_size == 64) {
#pragma unroll
      for (int fit = 0; fit < kFits; fit += 2)
        extremes[i][fit] = extremes[i][(fit + 1) % kFits] =
            MaxPair(extremes[i][fit], extremes[i][(fit + 1) % kFits]);
    }
  }
  uint32_t largest[2];
  ClipRows(a, s.clip_index, s.clip_guess, load, rows, own, all, largest, tile.threshold);
  const int h = static_cast<int>(threadIdx.x) / 2 % 2;
  tile.largest = LowBf16(h == 0 ? largest[0] : largest[1]);
  tile.good = (h == 0 ? largest[0] : largest[1]) < 0x7F80U;
#pragma unroll
  for (int fit = 0; fit < kFits; ++fit) {
    tile.fits[fit] = FitGroup(h == 0 ? extremes[0][fit] : extremes[1][fit],
                              h == 0 ? tile.threshold[0] : tile.threshold[1],
                              MaxCode(kTwoBits ? 2 : s.side.bits));
    tile.good = tile.good & IsStorable(tile.fits[fit].affine, a.view.format.metadata);
  }
  return tile;
}

template <int kOctets, int kFits>
__device__ inline void SlowPlanes(const RegisterRows<kOctets>& rows, const TileFits<kFits>& tile,
                                  int bits, RegisterPlanes<kOctets>& planes) {
  GroupFit fits[2][kOctets / 4];
  bool good[2];
  for (int h = 0; h < 2; ++h) {
    for (int b = 0; b < kOctets / 4; ++b) {
      const AffineGroup<float>& own = tile.fits[b * kFits / (kOctets / 4)].affine;
      fits[h][b].affine = {OfRow(own.scale, h), OfRow(own.zero, h)};
    }
    good[h] = OfRow(tile.good ? 1.0F : 0.0F, h) != 0;
  }
  ExactPlanes(rows, fits, tile.threshold, good, bits, planes);
}

// Quantizes the tokens in the mask `tokens`. Every 32 dims have their own fit unless kFits is 1.
template <int kOctets, bool kTwoBits, int kFits>
__device__ inline void QuantizeRegisters(const WriteArguments& a, const SideArguments& s,
                                         uint32_t tokens, uint8_t* record,
                                         const RegisterRows<kOctets>& rows,
                                         const TileFits<kFits>& fitted) {
  constexpr int kDim = 8 * kOctets;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int h = lane / 2 % 2;
  const int q = lane % 2;
  const int bits = kTwoBits ? 2 : s.side.bits;
  const int t = lane / 4 + 8 * h;
  const bool stored = (tokens >> t & 1) != 0;

  bool dividable = fitted.good;
#pragma unroll
  for (int fit = 0; fit < kFits; ++fit) dividable = dividable & fitted.fits[fit].regular;
  bool stepped = kTwoBits & dividable;
  CodeSteps steps[2][kFits];
  if constexpr (kTwoBits) {
#pragma unroll
    for (int fit = 0; fit < kFits; ++fit) {
      uint32_t own;
      stepped = stepped & FindSteps(fitted.fits[fit], q, own);
#pragma unroll
      for (int i = 0; i < 2; ++i) steps[i][fit] = StepsOfRow(own, i);
    }
  }

  if (q == 0 && stored) {
    if (!fitted.good) atomicAdd(a.bad_rows, 1U);
    const int groups = kFits == 1 ? 1 : kDim / s.side.quant_group_size;
#pragma unroll
    for (int fit = 0; fit < kFits; ++fit) {
      const AffineGroup<float> affine = fitted.good
                                            ? fitted.fits[fit].affine
                                            : AffineGroup<float>{__uint_as_float(0x7FC00000U), 0};
      if (fit % (kFits / groups) == 0)
        StoreAffine(record + s.metadata_offset, s.side, a.view.format.metadata, t,
                    fit / (kFits / groups), affine);
    }
  }

  // Rows that are not stored may have any codes.
  RegisterPlanes<kOctets> planes;
  if (kTwoBits && __all_sync(kWarp, stepped || !stored)) {
    TwoBitPlanes(rows, steps, planes.low);
  } else if (__all_sync(kWarp, dividable || !stored)) {
    AffineGroup<float> affine[2][kFits];
#pragma unroll
    for (int fit = 0; fit < kFits; ++fit) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        affine[i][fit] = {OfRow(fitted.fits[fit].affine.scale, i),
                          OfRow(fitted.fits[fit].affine.zero, i)};
    }
    DividedPlanes(rows, affine, fitted.threshold, bits, planes);
  } else {
    SlowPlanes<kOctets, kFits>(rows, fitted, bits, planes);
  }
  StoreWords(record + s.codes_offset, planes.low, 2, kDim, tokens, s.transposed);
  if constexpr (!kTwoBits) {
    uint8_t* high = record + s.codes_offset + PlaneBytes(kDim, 2);
    if (bits == 3) {
      uint32_t half[kOctets / 8];
#pragma unroll
      for (int i = 0; i < kOctets / 8; ++i) half[i] = planes.high[i];
      StoreWords(high, half, 1, kDim, tokens, s.transposed);
    } else {
      StoreWords(high, planes.high, 2, kDim, tokens, s.transposed);
    }
  }
}

}  // namespace oscar
