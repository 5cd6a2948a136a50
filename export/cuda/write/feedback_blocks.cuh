// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rotated prefills with error feedback on Hopper, dim 128, two bits, one group. Two warps quantize
// a block (block_pipeline.cuh), two tiles each, so that each lane has a row. Factors stay in shared
// memory.
#pragma once

#include "export/cuda/write/block_pipeline.cuh"
#include "export/cuda/write/feedback_rows.cuh"

namespace oscar {

// Twenty quantizing warps leave each thread 80 registers, so that the columns of R are multiplied
// in two halves, and shared memory has one slot more than blocks in progress.
inline constexpr int kFeedbackWarps = 20;
inline constexpr int kFeedbackThreads = 128 + 32 * kFeedbackWarps;
inline constexpr int kFeedbackSlots = kFeedbackWarps / 2 + 1;

template <int kDim>
using FeedbackPipelineShared = BlockPipelineShared<kDim, kFeedbackSlots, kFeedbackSlots>;

template <int kDim>
struct FeedbackShared {
  static constexpr int kStride = FeedbackStride(kDim);
  static constexpr int kFactor = (FeedbackPipelineShared<kDim>::kBytes + 15) / 16 * 16;
  static constexpr int kBytes = kFactor + kDim * kStride;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// Copies the factor's columns to shared memory; the quantizing threads call it.
template <int kDim>
__device__ inline void LoadFactor(const int8_t* factor, uint8_t* shared) {
  using Shared = FeedbackShared<kDim>;
  for (int i = 16 * (static_cast<int>(threadIdx.x) - 128); i < kDim * Shared::kStride;
       i += 16 * 32 * kFeedbackWarps)
    CopyAsync16(SharedAddress(shared) + Shared::kFactor + i, factor + i);
  CopyAsyncCommit();
  CopyAsyncWait<0>();
  asm volatile("bar.sync 2, %0;" ::"n"(32 * kFeedbackWarps) : "memory");
}

// Finds a tile and requests it. Called by a warp that may write to the tile's place among the
// slot's four.
template <int kDim>
__device__ inline void FindAndFetchTile(const WriteArguments& a, const SideArguments& s,
                                        const CUtensorMap* rows, int head, int block, int place,
                                        int slot, PrefillCursor& cursor, uint8_t* shared) {
  using Pipeline = FeedbackPipelineShared<kDim>;
  const int index = IndexOfTile(block, place);
  const TokenTile tile = index < a.tiles ? PrefillTile(a, index, cursor) : TokenTile{};
  FetchTile<Pipeline>(
      rows, head, tile.row, slot, place,
      [&] { Pipeline::Notes(shared, slot)[place] = NoteOf(a, s, tile, head); }, shared);
}

// A rotating warp's errands: it loads the page of a tile during the rotation.
template <int kDim>
struct PageErrands {
  const int32_t* page_table;
  int warp;
  uint8_t* shared;
  int page = 0;

  __device__ TileNote& Note(int slot) {
    return FeedbackPipelineShared<kDim>::Notes(shared, slot)[warp];
  }
  __device__ void Begin(int slot) {
    page = Note(slot).Quantized() != 0 ? __ldg(page_table + Note(slot).page) : 0;
  }
  __device__ void Beside(int) {}
  __device__ void End(int slot) {
    if (threadIdx.x % 32 == 0) Note(slot).page = page;
  }
};

// Quantizes every (kFeedbackWarps / 2)-th block; `warp` counts the quantizing warps.
template <int kDim>
__device__ inline void QuantizeBlocksWithFeedback(const WriteArguments& a, const SideArguments& s,
                                                  const CUtensorMap* map, bool values, int head,
                                                  int warp, int blocks, uint8_t* shared) {
  using Pipeline = FeedbackPipelineShared<kDim>;
  using Shared = FeedbackShared<kDim>;
  constexpr int kOctets = kDim / 8;
  constexpr int kUnits = kFeedbackWarps / 2;
  static_assert(kUnits < kFeedbackSlots);
  const uint32_t base = SharedAddress(shared);
  const auto* factor = reinterpret_cast<const int8_t*>(shared + Shared::kFactor);
  const float unit = s.feedback_units[head];
  const MetadataType type = a.view.format.metadata;
  LoadFactor<kDim>(s.feedback + int64_t{head} * kDim * Shared::kStride, shared);
  RingPlace<kFeedbackSlots> place;
  place.slot = warp / 2;
#pragma unroll 1
  for (int block = warp / 2; block < blocks; block += kUnits) {
    const int lane = LaneAgain();
    const TileNote* const notes = Pipeline::Notes(shared, place.slot) + warp % 2 * 2;
    const uint32_t rows = base + Pipeline::kStages + place.slot * kStageBytes<kDim> +
                          warp % 2 * (2 * kTileTokens * 128);
    BarrierWait(base + Pipeline::kRotated + 8 * place.slot, place.round & 1);
    AffineGroup<float> affine{};
    float largest = 0;
    bool good = false;
#pragma unroll 1
    for (int i = 0; i < 2; ++i) {
      const auto load = [&] {
        RegisterRows<kOctets> tile;
        // LoadRegisters counts rows from this warp's place in its warpgroup.
        LoadRegisters<kDim>(
            rows + (i - static_cast<int>(threadIdx.x) / 32 % 4) * (kTileTokens * 128), tile);
        return tile;
      };
      const auto fitted = FitTile<kOctets, true, 1>(a, s, load);
      const int of_row = lane % 8 * 4 + lane / 8 % 2 * 2;
      const float scale = __shfl_sync(kWarp, fitted.fits[0].affine.scale, of_row);
      const float zero = __shfl_sync(kWarp, fitted.fits[0].affine.zero, of_row);
      const int is_good = __shfl_sync(kWarp, fitted.good ? 1 : 0, of_row);
      const float of_largest = __shfl_sync(kWarp, fitted.largest, of_row);
      if (lane / 16 == i) {
        affine = {scale, zero};
        good = is_good != 0;
        largest = of_largest;
      }
      if (notes[i].RowsGoElsewhere()) {
        PrefillCursor cursor;
        StoreRotated(a, s, values, PrefillTile(a, IndexOfTile(block, warp % 2 * 2 + i), cursor),
                     head, load());
      }
    }
    __syncwarp();
    const auto record = [&](const TileNote& note) {
      return a.view.pages + int64_t{note.page} * a.page_bytes + note.record_offset;
    };
    const bool stored = (notes[lane / 16].Quantized() >> lane % 16 & 1) != 0;
    if (stored) {
      if (!good) atomicAdd(a.bad_rows, 1U);
      StoreAffine(record(notes[lane / 16]) + s.metadata_offset, s.side, type, lane % 16, 0,
                  good ? affine : AffineGroup<float>{__uint_as_float(0x7FC00000U), 0});
    }
    const auto chunk = [&](int row, int c) { return StagedChunk(rows, row, c); };
    const FeedbackFit fit = FitFeedback(AsStored(affine, type, 2), 2, unit);
    // Whether no value is further outside its row's range than the largest allowed error.
    const bool tame =
        fabsf(fit.zero) + largest * fit.share + 1 < (kMaxFeedback - 1) / FeedbackQuanta(2);
    const auto fit_of = [&](int) { return fit; };
    if (__all_sync(kWarp, tame || !good || !stored)) {
      FeedBack<2, true, kDim>(kDim, 2, factor, Shared::kStride, chunk, fit_of);
    } else {
      FeedBack<2, false, kDim>(kDim, 2, factor, Shared::kStride, chunk, fit_of);
    }
#pragma unroll 1
    for (int i = 0; i < 2; ++i) {
      const TileNote note = notes[i];
      uint32_t planes[kOctets / 4];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = 16 * i + 8 * h + lane / 4;
        const bool is_good = __shfl_sync(kWarp, good ? 1 : 0, row) != 0;
#pragma unroll
        for (int w = 0; w < kOctets / 8; ++w) {
          const uint32_t word = LoadWord(chunk(row, 8 * w + 7) + lane % 4 * 4);
          planes[h * (kOctets / 8) + w] = is_good ? word : 0;
        }
      }
      StoreWords(record(note) + s.codes_offset, planes, 2, kDim, note.Quantized(), s.transposed);
    }
    __syncwarp();
    // The warp that empties a slot requests its next contents, so that none waits for a slower
    // warp.
    if (block + kFeedbackSlots < blocks) {
#pragma unroll 1
      for (int i = 0; i < 2; ++i) {
        PrefillCursor cursor;
        FindAndFetchTile<kDim>(a, s, map, head, block + kFeedbackSlots, warp % 2 * 2 + i,
                               place.slot, cursor, shared);
      }
    }
    place.Advance(kUnits);
  }
}
#endif

template <int kDim>
__global__ void __launch_bounds__(kFeedbackThreads, 1)
    FeedbackPrefillKernel(const __grid_constant__ WriteArguments a,
                          const __grid_constant__ PipelineMaps maps, int first_side) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t shared[];
  using Pipeline = FeedbackPipelineShared<kDim>;
  const auto [head, values, blocks] = BeginPipeline<Pipeline>(a, maps, first_side, shared);
  const SideArguments& s = a.sides[values ? 1 : 0];
  const CUtensorMap* const rows = &maps.rows[values ? 1 : 0];
  const int warp = __shfl_sync(kWarp, static_cast<int>(threadIdx.x) / 32, 0);
  if (warp < 4) {
    PrefillCursor cursor;
    for (int block = 0; block < min(blocks, kFeedbackSlots); ++block)
      FindAndFetchTile<kDim>(a, s, rows, head, block, warp, block, cursor, shared);
    PageErrands<kDim> pages{a.view.page_table, warp, shared};
    RotateBlocks<Pipeline, 2, kDim / 16>(blocks, pages, shared);
  } else {
    QuantizeBlocksWithFeedback<kDim>(a, s, rows, values, head, warp - 4, blocks, shared);
  }
#endif
}

}  // namespace oscar
