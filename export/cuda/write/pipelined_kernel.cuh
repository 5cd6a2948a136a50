// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The write kernel for rotated prefills on Hopper, dim 128: a warpgroup of each CTA asks for rows
// and rotates them in shared memory, the others quantize them. A block is four tiles, 64 tokens.
// Grid: CTAs that share a head's blocks, heads, sides. Blocks go through a ring of slots, and
// the three barriers of a slot are all that orders copies, rotation and quantization.
#pragma once

#include "export/cuda/device/wgmma.cuh"
#include "export/cuda/write/register_kernel.cuh"

namespace oscar {

// As many quantizing warpgroups as leave the rotating one the registers for its sums; a CTA fills a
// multiprocessor.
inline constexpr int kQuantizers = 4;
inline constexpr int kPipelineThreads = 128 * (1 + kQuantizers);
inline constexpr int kRotatorRegisters = 128, kQuantizerRegisters = 88;
inline constexpr int kPipelineSlots = 8;
inline constexpr int kPipelineAhead = 3;  // blocks on their way from memory

struct PipelineMaps {
  CUtensorMap rows[2];      // of each side's input, boxes of a tile
  CUtensorMap rotation[2];  // [heads or 1 times dim, 1, dim], boxes of dim rows
};

// What the quantizing warp must know of its tile.
struct TileNote {
  int page;           // its place in the page table, until the tile is rotated
  int record_offset;  // bytes from the beginning of the page
  uint32_t quantized;
  int index;  // of the tile if its rows also go elsewhere, else -1
};

// Bytes from the beginning of shared memory.
template <int kDim, int kSlots = kPipelineSlots>
struct PipelineShared {
  static constexpr int kRotation = 0;
  static constexpr int kStages = kRotation + 2 * kDim * kDim;
  static constexpr int kNotes = kStages + kSlots * kStageBytes<kDim>;
  static constexpr int kFetched = kNotes + kSlots * 4 * static_cast<int>(sizeof(TileNote));
  static constexpr int kRotated = kFetched + 8 * kSlots;
  static constexpr int kEmpty = kRotated + 8 * kSlots;
  static constexpr int kRotationThere = kEmpty + 8 * kSlots;
  static constexpr int kBytes = kRotationThere + 8;
};

// Slots, one block after the other; `round` counts how often the ring was gone through.
template <int kSlots = kPipelineSlots>
struct RingPlace {
  int slot = 0, round = 0;
  __device__ void Advance(int blocks) {
    slot += blocks;
    if (slot >= kSlots) {
      slot -= kSlots;
      ++round;
    }
  }
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// Asks for a tile of a block, `index` of all: a warp that may write to its place of four in the
// slot.
template <int kDim, int kSlots>
__device__ inline void FetchTile(const WriteArguments& a, const SideArguments& s,
                                 const CUtensorMap* rows, int head, int index,
                                 const TokenTile& tile, int slot, int place, uint8_t* shared) {
  using Shared = PipelineShared<kDim, kSlots>;
  if (threadIdx.x % 32 == 0) {
    auto* fetched = reinterpret_cast<uint64_t*>(shared + Shared::kFetched + 8 * slot);
    uint8_t* const stage = shared + Shared::kStages + slot * kStageBytes<kDim>;
    FenceAsyncProxy();  // the slot was written by threads, and is by the copy engine now
#pragma unroll
    for (int panel = 0; panel < kDim / 64; ++panel)
      CopyTensor(stage + panel * kPanelBytes + place * (kTileTokens * 128), rows, fetched,
                 64 * panel, head, tile.row);
    const bool to_rows =
        tile.tokens != 0 && (s.rotated != nullptr || tile.tokens != tile.quantized);
    reinterpret_cast<TileNote*>(shared + Shared::kNotes)[slot * 4 + place] = {
        static_cast<int>(PageOf(a, tile) - a.view.page_table), RecordOffset(a, tile, head),
        tile.quantized, to_rows ? index : -1};
    BarrierExpect(SharedAddress(fetched), kTileTokens * 2 * kDim);
  }
  __syncwarp();
}

// Asks for blocks in their order. Each rotating warp asks for a tile of each.
template <int kDim, int kSlots = kPipelineSlots>
class BlockFetcher {
 public:
  __device__ BlockFetcher(const WriteArguments& a, const SideArguments& s, const CUtensorMap* rows,
                          int head, int blocks, uint8_t* shared)
      : a_(a), s_(s), rows_(rows), head_(head), left_(blocks), shared_(shared) {
    index_ = static_cast<int>(blockIdx.x) * 4 + Warp();
    FindTile();
  }

  // The next one, once its slot is empty.
  __device__ void Fetch() {
    using Shared = PipelineShared<kDim, kSlots>;
    if (left_ == 0) return;
    BarrierWait(SharedAddress(shared_) + Shared::kEmpty + 8 * place_.slot, place_.round + 1 & 1);
    FetchTile<kDim, kSlots>(a_, s_, rows_, head_, index_, tile_, place_.slot, Warp(), shared_);
    --left_;
    place_.Advance(1);
    index_ += 4 * static_cast<int>(gridDim.x);
    FindTile();
  }

 private:
  __device__ static int Warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ void FindTile() {
    tile_ = index_ < a_.tiles ? PrefillTile(a_, index_, cursor_) : TokenTile{};
  }

  const WriteArguments& a_;
  const SideArguments& s_;
  const CUtensorMap* rows_;
  int head_, left_;
  uint8_t* shared_;
  RingPlace<kSlots> place_;
  int index_ = 0;  // of the next tile
  TokenTile tile_;
  PrefillCursor cursor_;
};

// All threads of the rotating warpgroup.
__device__ inline void SyncRotators() { asm volatile("bar.sync 1, 128;" ::: "memory"); }

// kHalves: of the columns, one after the other, where there are few registers.
template <int kAhead, int kHalves, int kDim, int kSlots>
__device__ inline void RotateBlocks(BlockFetcher<kDim, kSlots>& fetcher, const int32_t* page_table,
                                    int blocks, uint8_t* shared) {
  using Shared = PipelineShared<kDim, kSlots>;
  const uint32_t base = SharedAddress(shared);
  const uint64_t r = WgmmaOperand(base + Shared::kRotation, kDim * 128);
  for (int block = 0; block < kAhead; ++block) fetcher.Fetch();
  BarrierWait(base + Shared::kRotationThere, 0);
  RingPlace<kSlots> place;
#pragma unroll 1
  for (int block = 0; block < blocks; ++block) {
    const uint32_t stage = base + Shared::kStages + place.slot * kStageBytes<kDim>;
    BarrierWait(base + Shared::kFetched + 8 * place.slot, place.round & 1);
    const uint64_t x = WgmmaOperand(stage);
    TileNote& note = reinterpret_cast<TileNote*>(
        shared + Shared::kNotes)[place.slot * 4 + static_cast<int>(threadIdx.x) / 32];
    // The page comes while the tile is rotated.
    const int page = note.quantized != 0 ? __ldg(page_table + note.page) : 0;
    constexpr int kPairs = kDim / 4 / kHalves;
    uint32_t y[kHalves][kPairs];
#pragma unroll 1  // of two chains of products ptxas would drop one
    for (int half = 0; half < kHalves; ++half) {
      float sums[2 * kPairs];
      WgmmaBegin();
#pragma unroll
      for (int i = 0; i < kDim / 16; ++i)
        Wgmma<true>(sums, x + i / 4 * (kPanelBytes / 16) + i % 4 * (32 / 16),
                    r + half * (kDim * 128 / 16) + i * (16 * 128 / 16), i > 0);
      WgmmaEnd();
      if (kAhead < kSlots && half == 0) fetcher.Fetch();
      WgmmaWait();
      Hold(sums);
#pragma unroll
      for (int i = 0; i < kPairs; ++i) {
        y[0][i] = y[kHalves - 1][i];
        y[kHalves - 1][i] = PackBf16x2(sums[2 * i], sums[2 * i + 1]);
      }
    }
    SyncRotators();  // all warps have read x
#pragma unroll
    for (int i = 0; i < kDim / 16; ++i) {
      const uint32_t* c = &y[4 * i / kPairs][4 * i % kPairs];
      StoreMatrices({c[0], c[1], c[2], c[3]}, StagedFragment(stage, i));
    }
    if (threadIdx.x % 32 == 0) note.page = page;
    __syncwarp();
    if (threadIdx.x % 32 == 0) BarrierArrive(base + Shared::kRotated + 8 * place.slot);
    place.Advance(1);
  }
}

// Every kQuantizers-th block; `group`: of this warpgroup.
template <int kDim, bool kTwoBits, int kFits>
__device__ inline void QuantizeBlocks(const WriteArguments& a, const SideArguments& s, bool values,
                                      int head, int group, int blocks, uint8_t* shared) {
  using Shared = PipelineShared<kDim>;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const uint32_t base = SharedAddress(shared);
  RingPlace<> place;
  place.slot = group;
#pragma unroll 1
  for (int block = group; block < blocks; block += kQuantizers) {
    BarrierWait(base + Shared::kRotated + 8 * place.slot, place.round & 1);
    const auto load = [&] {
      RegisterRows<kDim / 8> rows;
      LoadRegisters<kDim>(base + Shared::kStages + place.slot * kStageBytes<kDim>, rows);
      return rows;
    };
    const auto fitted = FitTile<kDim / 8, kTwoBits, kFits>(a, s, load);
    const TileNote note =
        reinterpret_cast<const TileNote*>(shared + Shared::kNotes)[place.slot * 4 + warp];
    const RegisterRows<kDim / 8> rows =
        load();  // they had no registers while thresholds were found
    __syncwarp();
    if (LaneAgain() == 0) BarrierArrive(base + Shared::kEmpty + 8 * place.slot);
    if (note.index >= 0) {
      PrefillCursor cursor;
      StoreRotated(a, s, values, PrefillTile(a, note.index, cursor), head, rows);
    }
    uint8_t* const record = a.view.pages + int64_t{note.page} * a.page_bytes + note.record_offset;
    QuantizeRegisters<kDim / 8, kTwoBits, kFits>(a, s, note.quantized, record, rows, fitted);
    place.Advance(kQuantizers);
  }
}

// One thread: makes the barriers, and asks for R.
template <int kDim, int kSlots = kPipelineSlots>
__device__ inline void PreparePipeline(const CUtensorMap* rotation, int row, uint8_t* shared) {
  using Shared = PipelineShared<kDim, kSlots>;
  for (int i = 0; i < 3 * kSlots; ++i)  // an arrival of each of four warps
    BarrierInit(SharedAddress(shared) + Shared::kFetched + 8 * i, 4);
  auto* there = reinterpret_cast<uint64_t*>(shared + Shared::kRotationThere);
  BarrierInit(SharedAddress(there), 1);
  FenceAsyncProxy();
  BarrierExpect(SharedAddress(there), 2 * kDim * kDim);
  for (int panel = 0; panel < kDim / 64; ++panel)
    CopyTensor(shared + Shared::kRotation + panel * kDim * 128, rotation, there, 64 * panel, 0,
               row);
}

// What a block of a pipelined kernel does: of one head of one side every gridDim.x-th block of
// tiles.
struct PipelineWork {
  int head;
  bool values;
  int blocks;
};
// All threads, first of all.
template <int kDim, int kSlots = kPipelineSlots>
__device__ inline PipelineWork BeginPipeline(const WriteArguments& a, const PipelineMaps& maps,
                                             int first_side, uint8_t* shared) {
  const int head = static_cast<int>(blockIdx.y);
  const bool values = first_side + blockIdx.z == 1;
  const int rest = (a.tiles + 3) / 4 - static_cast<int>(blockIdx.x);
  const int blocks = (rest + static_cast<int>(gridDim.x) - 1) / static_cast<int>(gridDim.x);
  LaunchDependents();
  if (threadIdx.x == 0)
    PreparePipeline<kDim, kSlots>(&maps.rotation[values ? 1 : 0],
                                  a.sides[values ? 1 : 0].rotation_stride != 0 ? head * kDim : 0,
                                  shared);
  __syncthreads();
  WaitForPreviousKernel();
  return {head, values, blocks};
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
  extern __shared__ __align__(1024) uint8_t shared[];
  const PipelineWork work = BeginPipeline<kDim>(a, maps, first_side, shared);
  const SideArguments& s = a.sides[work.values ? 1 : 0];
  // Known to be the same in all lanes, or the compiler lets each product wait for the one before.
  const int group = __shfl_sync(kWarp, static_cast<int>(threadIdx.x) / 128, 0);
  if (group == 0) {
    TakeRegisters<kRotatorRegisters>();
    BlockFetcher<kDim> fetcher(a, s, &maps.rows[work.values ? 1 : 0], work.head, work.blocks,
                               shared);
    RotateBlocks<kPipelineAhead, 1>(fetcher, a.view.page_table, work.blocks, shared);
  } else {
    GiveRegisters<kQuantizerRegisters>();
    QuantizeBlocks<kDim, kTwoBits, kOneGroup ? 1 : kDim / 32>(a, s, work.values, work.head,
                                                              group - 1, work.blocks, shared);
  }
#endif
}

}  // namespace oscar
