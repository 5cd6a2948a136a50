// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A tile in a warp's registers to its record: clip, fit, codes, planes. It does what QuantizeTile
// (tile_codec.cuh) does for any shape, for dims known to the compiler. Trap: the lanes of a quad
// share the fits of its two rows, lanes with bit 1 clear the first and the others the second.
#pragma once

#include "export/cuda/write/register_codes.cuh"

namespace oscar {

// Values of rows that lane (quad, 2 h) holds, in all lanes of the quad.
__device__ inline float OfRow(float x, int h) {
  const int quad = static_cast<int>(threadIdx.x % 32) & ~3;
  return __shfl_sync(kWarp, x, quad + 2 * h);
}

template <int kWords>
__device__ inline void StoreWords(uint8_t* plane, uint32_t (&words)[kWords], int plane_bits,
                                  int dim, uint32_t tokens, bool transposed) {
  constexpr int kChunk = ChunkWords(kWords);
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (transposed) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = Transpose8x8(words[i]);
  }
  if (tokens != 0xFFFFU) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      uint32_t mask = PlaneMask(plane_bits, dim, i, tokens);
      if (transposed) mask = Transpose8x8(mask);
      const uint32_t old = *reinterpret_cast<const uint32_t*>(plane + WordByte(kWords, lane, i));
      words[i] = (words[i] & mask) | (old & ~mask);
    }
  }
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

// Fits of this lane's row (kFits blocks of it), both thresholds and whether both rows are good.
template <int kFits>
struct TileFits {
  GroupFit fits[kFits];
  float threshold[2];
  bool good;  // of this lane's row
};

template <int kOctets, int kFits>
__device__ inline TileFits<kFits> FitTile(const WriteArguments& a, const SideArguments& s,
                                          const RegisterRows<kOctets>& rows, int max_code) {
  constexpr int kBlocks = kOctets / 4;
  TileFits<kFits> tile;
  Extremes<kOctets> e = FindExtremes(rows);
  const MagnitudeBounds bounds = BoundMagnitudes(e, 8 * kOctets - s.clip_index);
  tile.threshold[0] = tile.threshold[1] = __uint_as_float(0x7F800000U);
  if (s.clip_index >= 0) {
    const RegisterRows<kOctets> magnitudes = Magnitudes(rows);
    if (a.bisect) {
      BisectThresholds(magnitudes, bounds, s.clip_index, tile.threshold);
    } else {
      SortThresholds(magnitudes, bounds, s.clip_index, tile.threshold);
    }
  }
  const int h = static_cast<int>(threadIdx.x) / 2 % 2;
  const uint32_t largest = h == 0 ? bounds.high & 0xFFFFU : bounds.high >> 16;
  tile.good = largest < 0x7F80U;
  if (kFits > 1 && s.side.quant_group_size == 64) {
#pragma unroll
    for (int b = 0; b < kBlocks; b += 2) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        e.max[i][b] = e.max[i][b + 1] = MaxPair(e.max[i][b], e.max[i][b + 1]);
        e.min[i][b] = e.min[i][b + 1] = MinPair(e.min[i][b], e.min[i][b + 1]);
      }
    }
  }
#pragma unroll
  for (int fit = 0; fit < kFits; ++fit) {
    uint32_t extremes[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      uint32_t max = e.max[i][fit * kBlocks / kFits];
      uint32_t min = e.min[i][fit * kBlocks / kFits];
#pragma unroll
      for (int b = fit * kBlocks / kFits + 1; b < (fit + 1) * kBlocks / kFits; ++b) {
        max = MaxPair(max, e.max[i][b]);
        min = MinPair(min, e.min[i][b]);
      }
      max = MaxPair(max, SwapPair(max));
      min = NegatePair(MinPair(min, SwapPair(min)));
      extremes[i] = PairOf(max, min);
#pragma unroll
      for (int lane = 1; lane <= 2; lane *= 2)
        extremes[i] = MaxPair(extremes[i], __shfl_xor_sync(kWarp, extremes[i], lane));
    }
    tile.fits[fit] = FitGroup(h == 0 ? extremes[0] : extremes[1],
                              h == 0 ? tile.threshold[0] : tile.threshold[1], max_code);
    tile.good = tile.good & IsStorable(tile.fits[fit].affine, a.view.format.metadata);
  }
  return tile;
}

template <int kOctets, int kFits>
__device__ __noinline__ void SlowPlanes(const RegisterRows<kOctets>& rows,
                                        const TileFits<kFits>& tile, int bits,
                                        RegisterPlanes<kOctets>& planes) {
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

// Quantizes the tokens `tile.quantized`. Blocks of 32 dims have a fit each unless kFits is 1.
// prefetch() is called when the most registers are free.
template <int kOctets, bool kTwoBits, int kFits, typename Prefetch>
__device__ inline void QuantizeRegisters(const WriteArguments& a, const SideArguments& s,
                                         const TokenTile& tile, int head,
                                         const RegisterRows<kOctets>& rows, Prefetch prefetch) {
  constexpr int kDim = 8 * kOctets;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int h = lane / 2 % 2;
  const int q = lane % 2;
  const int bits = kTwoBits ? 2 : s.side.bits;
  const TileFits<kFits> fitted = FitTile<kOctets, kFits>(a, s, rows, MaxCode(bits));
  prefetch();
  const int t = lane / 4 + 8 * h;
  const bool stored = (tile.quantized >> t & 1) != 0;
  uint8_t* record = TileRecord(a, tile, head);

  bool dividable = fitted.good;
#pragma unroll
  for (int fit = 0; fit < kFits; ++fit) dividable = dividable & fitted.fits[fit].regular;
  bool lined = kTwoBits & dividable;
  TwoBitLine lines[2][kFits];
  if constexpr (kTwoBits) {
#pragma unroll
    for (int fit = 0; fit < kFits; ++fit) {
      const TwoBitLine line = FitLine(fitted.fits[fit], q);
      lined = lined & line.exact;
#pragma unroll
      for (int i = 0; i < 2; ++i)
        lines[i][fit] = {OfRow(line.slope, i), OfRow(line.offset, i), true};
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
        StoreAffine(record + s.metadata_offset, a.view.format.metadata, t, fit / (kFits / groups),
                    affine);
    }
  }

  // Rows that are not stored may have any codes.
  RegisterPlanes<kOctets> planes;
  if (kTwoBits && __all_sync(kWarp, lined || !stored)) {
    TwoBitPlanes(rows, lines, planes.low);
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
    const RegisterRows<kOctets> rows_copy = rows;  // the address of a copy, so that rows stay
    const TileFits<kFits> fitted_copy = fitted;    // in registers
    RegisterPlanes<kOctets> slow;
    SlowPlanes<kOctets, kFits>(rows_copy, fitted_copy, bits, slow);
    planes = slow;
  }
  StoreWords(record + s.codes_offset, planes.low, 2, kDim, tile.quantized, s.transposed);
  if constexpr (!kTwoBits) {
    uint8_t* high = record + s.codes_offset + PlaneBytes(kDim, 2);
    if (bits == 3) {
      uint32_t half[kOctets / 8];
#pragma unroll
      for (int i = 0; i < kOctets / 8; ++i) half[i] = planes.high[i];
      StoreWords(high, half, 1, kDim, tile.quantized, s.transposed);
    } else {
      StoreWords(high, planes.high, 2, kDim, tile.quantized, s.transposed);
    }
  }
}

}  // namespace oscar
