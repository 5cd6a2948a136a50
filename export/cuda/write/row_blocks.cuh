// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes rotated prefills on Hopper, dim 128, two bits, if quantizing a row takes many steps: with
// error feedback, with fitted byte scales for groups of 32, or both. Two warps quantize a block
// (block_pipeline.cuh), two tiles each, so that each lane has a row. Feedback factors stay in
// shared memory.
#pragma once

#include "export/cuda/write/block_pipeline.cuh"
#include "export/cuda/write/fitted_rows.cuh"

namespace oscar {

// Twenty quantizing warps leave each thread 80 registers, so the columns of R are multiplied in two
// halves. The ring has one slot more than blocks in progress, or two without feedback factors.
inline constexpr int kRowWarps = 20;
inline constexpr int kRowThreads = 128 + 32 * kRowWarps;

template <bool kFeedback>
inline constexpr int kRowSlots = kRowWarps / 2 + (kFeedback ? 1 : 2);

template <int kDim, bool kFeedback>
struct RowShared : BlockPipelineShared<kDim, kRowSlots<kFeedback>, kRowSlots<kFeedback>> {
  using Pipeline = BlockPipelineShared<kDim, kRowSlots<kFeedback>, kRowSlots<kFeedback>>;
  static constexpr int kStride = FeedbackStride(kDim);
  static constexpr int kFactor = (Pipeline::kBytes + 15) / 16 * 16;
  static constexpr int kBytes = kFactor + (kFeedback ? kDim * kStride : 0);
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// Copies the columns of the feedback factor to shared memory. All quantizing threads must call it.
template <int kDim>
__device__ inline void LoadFactor(const int8_t* factor, uint8_t* shared) {
  using Shared = RowShared<kDim, true>;
  for (int i = 16 * (static_cast<int>(threadIdx.x) - 128); i < kDim * Shared::kStride;
       i += 16 * 32 * kRowWarps)
    CopyAsync16(SharedAddress(shared) + Shared::kFactor + i, factor + i);
  CopyAsyncCommit();
  CopyAsyncWait<0>();
  asm volatile("bar.sync 2, %0;" ::"n"(32 * kRowWarps) : "memory");
}

// Finds tile `place` (0 to 3) of a block and requests its rows for a slot. The calling warp must be
// allowed to overwrite that place of the slot.
template <class Shared>
__device__ inline void FindAndFetchTile(const WriteArguments& a, const SideArguments& s,
                                        const CUtensorMap* rows, int head, int block, int place,
                                        int slot, PrefillCursor& cursor, uint8_t* shared) {
  const int index = IndexOfTile(block, place);
  const TokenTile tile = index < a.tiles ? PrefillTile(a, index, cursor) : TokenTile{};
  FetchTile<Shared>(
      rows, head, tile.row, slot, place,
      [&] { Shared::Notes(shared, slot)[place] = NoteOf(a, s, tile, head); }, shared);
}

// The errands of a rotating warp, which loads the page number of a tile during the rotation.
template <class Shared>
struct PageErrands {
  const int32_t* page_table;
  int warp;
  uint8_t* shared;
  int page = 0;

  __device__ TileNote& Note(int slot) { return Shared::Notes(shared, slot)[warp]; }
  __device__ void Begin(int slot) {
    page = Note(slot).Quantized() != 0 ? __ldg(page_table + Note(slot).page) : 0;
  }
  __device__ void Beside(int) {}
  __device__ void End(int slot) {
    if (threadIdx.x % 32 == 0) Note(slot).page = page;
  }
};

// The state of a lane's row while it is quantized.
struct LaneRow {
  float threshold = 0;
  float largest = 0;            // largest magnitude
  bool good = false;            // whether it can be stored
  AffineGroup<float> affine{};  // fit of a row with one group
  uint32_t bytes[2] = {};       // AffineBytes of a row with four groups
};

// Returns the scale and zero of group i as a reader gets them.
__device__ inline AffineGroup<float> StoredGroup(const LaneRow& row, int i) {
  const uint32_t bytes = (i < 2 ? row.bytes[0] : row.bytes[1]) >> 16 * (i % 2);
  const auto zero = static_cast<float>(static_cast<int8_t>(bytes >> 8));
  return {__half2float(__ushort_as_half(static_cast<uint16_t>((bytes & 0xFF) << 7))),
          __fmaf_rn(zero, 1 / kFittedSteps, kMiddleCode)};
}

// Finds each row's threshold and largest magnitude, and the fit of a row with one group. Computes
// them in the layout of fragments and passes them to the lanes that have the rows.
template <int kDim, bool kFitted, class Load>
__device__ inline void ClipTile(const WriteArguments& a, const SideArguments& s, int clip_index,
                                float clip_guess, const Load& load, bool own, LaneRow& row) {
  constexpr int kOctets = kDim / 8;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int h = lane / 2 % 2;
  const int of_row = lane % 8 * 4 + lane / 8 % 2 * 2;
  TileFits<1> fitted{};
  if constexpr (kFitted) {
    const RegisterRows<kOctets> rows = load();
    const LaneExtremes<1> lanes = FindExtremes<kOctets, 1>(rows);
    const uint32_t extremes[2] = {QuadExtremes(lanes.max[0][0], lanes.min[0][0]),
                                  QuadExtremes(lanes.max[1][0], lanes.min[1][0])};
    uint32_t largest[2];
    ClipRows(a, clip_index, clip_guess, load, rows, lanes, extremes, largest, fitted.threshold);
    fitted.largest = LowBf16(h == 0 ? largest[0] : largest[1]);
    fitted.good = (h == 0 ? largest[0] : largest[1]) < 0x7F80U;
  } else {
    fitted = FitTile<kOctets, true, 1>(a, s, load);
  }
  const auto of = [&](float x) { return __shfl_sync(kWarp, x, of_row); };
  const float threshold = of(h == 0 ? fitted.threshold[0] : fitted.threshold[1]),
              largest = of(fitted.largest), good = of(fitted.good ? 1 : 0);
  AffineGroup<float> affine{};
  if constexpr (!kFitted)
    affine = {of(fitted.fits[0].affine.scale), of(fitted.fits[0].affine.zero)};
  if (own) row = {threshold, largest, good != 0, affine};
}

// Fits the groups of a row one after the other. With kCodes (no feedback) it also writes their
// codes over the last chunk of every 64 dims, as words of K's planes for the lanes of a quad.
template <int kDim, bool kCodes, class Chunk>
__device__ inline void FitRow(const Chunk& chunk, bool stored, LaneRow& row, float& largest_error,
                              float& widest) {
  uint32_t words[4] = {};
  widest = largest_error = 0;
#pragma unroll 1
  for (int i = 0; i < kDim / kFittedGroup; ++i) {
    uint32_t x[16];
    const auto load = [&] {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const uint4 four = LoadChunk(chunk(4 * i + j));
        x[4 * j] = four.x;
        x[4 * j + 1] = four.y;
        x[4 * j + 2] = four.z;
        x[4 * j + 3] = four.w;
      }
    };
    load();
    uint32_t max = x[0], min = x[0];
#pragma unroll
    for (int j = 1; j < 16; ++j) {
      max = MaxPair(max, x[j]);
      min = MinPair(min, x[j]);
    }
    const uint32_t extremes =
        PairOf(MaxPair(max, SwapPair(max)), NegatePair(MinPair(min, SwapPair(min))));
    const AffineGroup<float> fitted =
        FitGroupOfBytes(x, extremes, row.threshold, row.good & stored,
                        [&](int j) { return LoadWord(chunk(4 * i + j / 4) + j % 4 * 4); });
    row.good = row.good & IsStorable(fitted, MetadataType::kByte);
    const ByteAffine rounded = RoundToBytes(fitted);
    const AffineGroup<float> as_stored = rounded.affine;
    row.bytes[0] = row.bytes[0] >> 16 | row.bytes[1] << 16;
    row.bytes[1] = __byte_perm(row.bytes[1], rounded.bytes, 0x5432);
    if constexpr (kCodes) {
      uint32_t code[3];
      StepsOfBytes(as_stored, code);
      load();  // loaded again, so that x needs no registers before
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        uint32_t word = 0;
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const uint32_t y = x[4 * n + t];
          word += (ReachMask(y, code[0]) + ReachMask(y, code[1]) + ReachMask(y, code[2])) *
                  (0xFFFEFFFFU << 2 * n);
        }
        words[t] = i % 2 == 0 ? word : words[t] | word << 8;
      }
      if (i % 2 == 1) StoreChunk(chunk(4 * i + 3), words);
    } else {
      // The error is largest where the largest value has code 0 or the smallest value has code 3.
      const float high = __fmaf_rn(as_stored.zero, as_stored.scale, LowBf16(extremes)),
                  low = __fmaf_rn(-as_stored.zero, as_stored.scale, HighBf16(extremes));
      largest_error = fmaxf(largest_error, fmaxf(high, __fmaf_rn(3, as_stored.scale, low)));
      widest = fmaxf(widest, as_stored.scale);
    }
  }
}

// Quantizes every (kRowWarps / 2)-th block. `warp`: index among the quantizing warps.
template <int kDim, bool kFitted, bool kFeedback>
__device__ inline void QuantizeRowBlocks(const WriteArguments& a, const SideArguments& s,
                                         const CUtensorMap* map, bool values, int head, int warp,
                                         int blocks, uint8_t* shared) {
  using Shared = RowShared<kDim, kFeedback>;
  constexpr int kOctets = kDim / 8;
  constexpr int kUnits = kRowWarps / 2;
  constexpr int kSlots = Shared::kSlots;
  static_assert(kUnits < kSlots);
  const uint32_t base = SharedAddress(shared);
  const auto* factor = reinterpret_cast<const int8_t*>(shared + Shared::kFactor);
  float unit = 1;
  if constexpr (kFeedback) {
    unit = s.feedback_units[head];
    LoadFactor<kDim>(s.feedback + int64_t{head} * kDim * Shared::kStride, shared);
  }
  int clip_index = -1;
  float clip_guess = 0;
  if constexpr (kFitted) {
    clip_index = s.ClipIndexOf(head);
    const float rank = (static_cast<float>(clip_index) + 0.5F) / kDim;
    clip_guess = s.spread_share * 1.41421356F * erfinvf(rank);  // as in SideArguments
  }
  PrefillCursor cursor;  // for the tiles that this warp requests
  RingPlace<kSlots> place;
  place.slot = warp / 2;
#pragma unroll 1
  for (int block = warp / 2; block < blocks; block += kUnits) {
    const int lane = LaneAgain();
    const TileNote* const notes = Shared::Notes(shared, place.slot) + warp % 2 * 2;
    const uint32_t rows = base + Shared::kStages + place.slot * kStageBytes<kDim> +
                          warp % 2 * (2 * kTileTokens * 128);
    BarrierWait(base + Shared::kRotated + 8 * place.slot, place.round & 1);
    LaneRow row;
#pragma unroll 1
    for (int i = 0; i < 2; ++i) {
      const auto load = [&] {
        RegisterRows<kOctets> tile;
        // LoadRegisters adds the offset of this warp's place in its warpgroup, which is subtracted
        // here.
        LoadRegisters<kDim>(
            rows + (i - static_cast<int>(threadIdx.x) / 32 % 4) * (kTileTokens * 128), tile);
        return tile;
      };
      ClipTile<kDim, kFitted>(a, s, clip_index, clip_guess, load, lane / 16 == i, row);
      if (notes[i].RowsGoElsewhere()) {
        PrefillCursor own;
        StoreRotated(a, s, values, PrefillTile(a, IndexOfTile(block, warp % 2 * 2 + i), own), head,
                     load());
      }
    }
    __syncwarp();
    const auto record = [&](const TileNote& note) {
      return a.view.pages + int64_t{note.page} * a.page_bytes + note.record_offset;
    };
    const auto chunk = [&](int r, int c) { return StagedChunk(rows, r, c); };
    const bool stored = (notes[lane / 16].Quantized() >> lane % 16 & 1) != 0;
    float largest_error = 0, widest = 0;
    if constexpr (kFitted)
      FitRow<kDim, !kFeedback>([&](int c) { return chunk(lane, c); }, stored, row, largest_error,
                               widest);
    if (stored) {
      if (!row.good) atomicAdd(a.bad_rows, 1U);
      uint8_t* const metadata = record(notes[lane / 16]) + s.metadata_offset;
      if constexpr (kFitted) {
        const uint32_t not_storable = AffineBytes({__uint_as_float(0x7FC00000U), 0}, 2) * 0x10001U;
        const uint32_t bytes[2] = {row.good ? row.bytes[0] : not_storable,
                                   row.good ? row.bytes[1] : not_storable};
#pragma unroll
        for (int i = 0; i < 4; ++i)
          reinterpret_cast<uint16_t*>(metadata)[(lane % 8 * 4 + i) * 2 + lane / 8 % 2] =
              static_cast<uint16_t>(bytes[i / 2] >> 16 * (i % 2));
      } else {
        StoreAffine(metadata, s.side, a.view.format.metadata, lane % 16, 0,
                    row.good ? row.affine : AffineGroup<float>{__uint_as_float(0x7FC00000U), 0});
      }
    }
    const auto feed_back = [&](bool tame, const auto& fit_of) {
      if (__all_sync(kWarp, tame || !row.good || !stored)) {
        FeedBack<2, true, kDim, !kFitted>(kDim, 2, factor, Shared::kStride, chunk, fit_of);
      } else {
        FeedBack<2, false, kDim, !kFitted>(kDim, 2, factor, Shared::kStride, chunk, fit_of);
      }
    };
    if constexpr (kFeedback && kFitted) {
      FeedbackFit fit{};
      const float of_widest = Reciprocal(widest);
      feed_back(largest_error * (FeedbackQuanta(2) / 3) < widest * (kMaxFeedback - 1),
                [&](int first) {
                  if (first % kFittedGroup != 0) return fit;
                  const AffineGroup<float> group = StoredGroup(row, first / kFittedGroup);
                  const float inverse = Reciprocal(group.scale), share = CodeShare(2),
                              quanta = FeedbackQuanta(2);
                  // Does what FitFeedback does. Scales have four significant bits, and no quotient
                  // of two scales is below 2^-34, so DivideBf16 is exact.
                  return fit = {DivideBy(share, group.scale, inverse), group.zero * share,
                                DivideBf16(widest, group.scale, inverse) * (unit / quanta),
                                DivideBf16(group.scale, widest, of_widest) * quanta};
                });
    } else if constexpr (kFeedback) {
      const FeedbackFit fit = FitFeedback(AsStored(row.affine, a.view.format.metadata, 2), 2, unit);
      // Whether no value is farther from its code than the largest error that can be fed back.
      const bool tame = row.largest * fit.share + fmaxf(fit.zero, 1 - fit.zero) <
                        (kMaxFeedback - 1) / FeedbackQuanta(2);
      feed_back(tame, [&](int) { return fit; });
    } else {
      __syncwarp();
    }
#pragma unroll 1
    for (int i = 0; i < 2; ++i) {
      const TileNote note = notes[i];
      uint32_t planes[kOctets / 4];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int r = 16 * i + 8 * h + lane / 4;
        const bool is_good = __shfl_sync(kWarp, row.good ? 1 : 0, r) != 0;
#pragma unroll
        for (int w = 0; w < kOctets / 8; ++w) {
          const uint32_t word = LoadWord(chunk(r, 8 * w + 7) + lane % 4 * 4);
          planes[h * (kOctets / 8) + w] = is_good ? word : 0;
        }
      }
      StoreWords(record(note) + s.codes_offset, planes, 2, kDim, note.Quantized(), s.transposed);
    }
    __syncwarp();
    // The warp that empties its half of a slot requests the next rows for it, so that no warp waits
    // for a slower one.
    if (block + kSlots < blocks) {
#pragma unroll 1
      for (int i = 0; i < 2; ++i)
        FindAndFetchTile<Shared>(a, s, map, head, block + kSlots, warp % 2 * 2 + i, place.slot,
                                 cursor, shared);
    }
    place.Advance(kUnits);
  }
}
#endif

template <int kDim, bool kFitted, bool kFeedback>
__global__ void __launch_bounds__(kRowThreads, 1)
    RowPrefillKernel(const __grid_constant__ WriteArguments a,
                     const __grid_constant__ PipelineMaps maps, int first_side) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t shared[];
  using Shared = RowShared<kDim, kFeedback>;
  const auto [head, values, blocks] = BeginPipeline<Shared>(a, maps, first_side, shared);
  const SideArguments& s = a.sides[values ? 1 : 0];
  const CUtensorMap* const rows = &maps.rows[values ? 1 : 0];
  const int warp = __shfl_sync(kWarp, static_cast<int>(threadIdx.x) / 32, 0);
  if (warp < 4) {
    PrefillCursor cursor;
    for (int block = 0; block < min(blocks, Shared::kSlots); ++block)
      FindAndFetchTile<Shared>(a, s, rows, head, block, warp, block, cursor, shared);
    PageErrands<Shared> pages{a.view.page_table, warp, shared};
    RotateBlocks<Shared, 2, kDim / 16>(blocks, pages, shared);
  } else {
    QuantizeRowBlocks<kDim, kFitted, kFeedback>(a, s, rows, values, head, warp - 4, blocks, shared);
  }
#endif
}

}  // namespace oscar
