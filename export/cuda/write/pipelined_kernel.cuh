// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The write kernel for rotated prefills on Hopper, dim 128 (block_pipeline.cuh). The rotating
// warpgroup also plans the next tiles and requests their rows.
#pragma once

#include "export/cuda/write/block_pipeline.cuh"

namespace oscar {

// With this number of quantizing warpgroups, the rotating one has enough registers for its sums if
// a CTA fills a multiprocessor.
inline constexpr int kQuantizers = 4;
inline constexpr int kPipelineThreads = 128 * (1 + kQuantizers);
inline constexpr int kRotatorRegisters = 128, kQuantizerRegisters = 88;
inline constexpr int kPipelineSlots = 9;
inline constexpr int kPipelineAhead = 2;   // blocks being loaded from memory
inline constexpr int kPlannedBlocks = 32;  // blocks planned at a time, one per lane
inline constexpr int kTogether = 4;        // products in flight, of 8 per block

template <int kDim>
using PipelineShared = BlockPipelineShared<kDim, kPipelineSlots, 2 * kPlannedBlocks>;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
template <int kDim>
__device__ inline TileNote* PlannedNotes(uint8_t* shared, int block) {
  return PipelineShared<kDim>::Notes(shared, block % (2 * kPlannedBlocks));
}

// The errands of a rotating warp, which plans one tile of each block and requests its rows.
template <int kDim>
class TilePlanner {
  using Shared = PipelineShared<kDim>;

 public:
  __device__ TilePlanner(const WriteArguments& a, const PipelineMaps& maps,
                         const PipelineWork& work, int warp, uint8_t* shared)
      : a_(a),
        side_(a.sides[work.values ? 1 : 0]),
        rows_(&maps.rows[work.values ? 1 : 0]),
        work_(work),
        warp_(warp),
        shared_(shared) {}

  // Plans the next kPlannedBlocks blocks. StorePages() adds their pages later.
  __device__ void Plan() {
    const int block = planned_ + static_cast<int>(threadIdx.x % 32);
    const int index = IndexOfTile(block, warp_);
    const TokenTile tile = index < a_.tiles ? PrefillTile(a_, index, cursor_) : TokenTile{};
    note_ = &Note(block);
    *note_ = NoteOf(a_, side_, tile, work_.head);
    page_ = tile.quantized != 0 ? __ldg(PageOf(a_, tile)) : 0;
    planned_ += kPlannedBlocks;
    __syncwarp();
  }
  __device__ void StorePages() { note_->page = page_; }

  // Requests the next block once its slot is empty.
  __device__ void Fetch() {
    if (next_ == work_.blocks) return;
    const int row = __shfl_sync(kWarp, Note(next_).row, 0);
    BarrierWait(SharedAddress(shared_) + Shared::kEmpty + 8 * place_.slot, place_.round + 1 & 1);
    FetchTile<Shared>(
        rows_, work_.head, row, place_.slot, warp_, [] {}, shared_);
    ++next_;
    place_.Advance(1);
  }

  __device__ void Begin(int) {}
  __device__ void Beside(int block) {
    Fetch();
    // Overwrites the notes of the kPlannedBlocks blocks before the current ones; those are
    // quantized by now.
    if (block % kPlannedBlocks == kPlannedBlocks / 2 && planned_ < work_.blocks) {
      Plan();
      StorePages();
    }
  }
  __device__ void End(int) {}

 private:
  __device__ TileNote& Note(int block) { return PlannedNotes<kDim>(shared_, block)[warp_]; }

  const WriteArguments& a_;
  const SideArguments& side_;
  const CUtensorMap* rows_;
  PipelineWork work_;
  int warp_;
  uint8_t* shared_;
  int planned_ = 0, next_ = 0;  // blocks
  RingPlace<kPipelineSlots> place_;
  PrefillCursor cursor_;
  TileNote* note_ = nullptr;
  int page_ = 0;
};

// Quantizes every kQuantizers-th block. `group`: the index of this warpgroup among the quantizing
// ones.
template <int kDim, bool kTwoBits, int kFits>
__device__ inline void QuantizeBlocks(const WriteArguments& a, const PipelineWork& work, int group,
                                      uint8_t* shared) {
  using Shared = PipelineShared<kDim>;
  const SideArguments& s = a.sides[work.values ? 1 : 0];
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const uint32_t base = SharedAddress(shared);
  RingPlace<kPipelineSlots> place;
  place.slot = group;
#pragma unroll 1
  for (int block = group; block < work.blocks; block += kQuantizers) {
    BarrierWait(base + Shared::kRotated + 8 * place.slot, place.round & 1);
    const auto load = [&] {
      RegisterRows<kDim / 8> rows;
      LoadRegisters<kDim>(base + Shared::kStages + place.slot * kStageBytes<kDim>, rows);
      return rows;
    };
    const auto fitted = FitTile<kDim / 8, kTwoBits, kFits>(a, s, load);
    const TileNote note = PlannedNotes<kDim>(shared, block)[warp];
    const RegisterRows<kDim / 8> rows =
        load();  // reloads rows that were dropped to free registers for the thresholds
    __syncwarp();
    if (LaneAgain() == 0) BarrierArrive(base + Shared::kEmpty + 8 * place.slot);
    if (note.RowsGoElsewhere()) {
      PrefillCursor cursor;
      StoreRotated(a, s, work.values, PrefillTile(a, IndexOfTile(block, warp), cursor), work.head,
                   rows);
    }
    uint8_t* const record = a.view.pages + int64_t{note.page} * a.page_bytes + note.record_offset;
    QuantizeRegisters<kDim / 8, kTwoBits, kFits>(a, s, note.Quantized(), record, rows, fitted);
    place.Advance(kQuantizers);
  }
}

template <uint32_t kRegisters>
__device__ inline void TakeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <uint32_t kRegisters>
__device__ inline void GiveRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
#endif

template <int kDim, bool kTwoBits, bool kOneGroup>
__global__ void __launch_bounds__(kPipelineThreads, 1)
    PipelinedPrefillKernel(const __grid_constant__ WriteArguments a,
                           const __grid_constant__ PipelineMaps maps, int first_side) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Shared = PipelineShared<kDim>;
  extern __shared__ __align__(1024) uint8_t shared[];
  const PipelineWork work = BeginPipeline<Shared>(a, maps, first_side, shared);
  // The shuffle shows the compiler that all lanes have the same value. Otherwise each product would
  // wait for the previous one.
  const int warp = __shfl_sync(kWarp, static_cast<int>(threadIdx.x) / 32, 0);
  if (warp < 4) {
    TakeRegisters<kRotatorRegisters>();
    TilePlanner<kDim> planner(a, maps, work, warp, shared);
    planner.Plan();
    for (int block = 0; block < kPipelineAhead; ++block) planner.Fetch();
    planner.StorePages();
    RotateBlocks<Shared, 1, kTogether>(work.blocks, planner, shared);
  } else {
    GiveRegisters<kQuantizerRegisters>();
    QuantizeBlocks<kDim, kTwoBits, kOneGroup ? 1 : kDim / 32>(a, work, warp / 4 - 1, shared);
  }
#endif
}

}  // namespace oscar
