// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of the write kernels for rotated prefills on Hopper, dim 128. A block is four tiles
// (64 tokens). Blocks go through a ring of slots in shared memory: copies fill a slot, one
// warpgroup of the CTA rotates its rows in place, and the others quantize them. Every slot has a
// barrier for each state: rows are loaded, rows are rotated, slot is free. Grid: [CTAs per head,
// heads, keys and values].
#pragma once

#include "export/cuda/device/wgmma.cuh"
#include "export/cuda/write/register_kernel.cuh"

namespace oscar {

struct PipelineMaps {
  CUtensorMap rows[2];      // per side: input rows, in boxes of a tile
  CUtensorMap rotation[2];  // [(heads or 1) * dim, 1, dim], in boxes of dim rows
};

// Describes a tile to the warp that quantizes it.
struct TileNote {
  int page;           // page number; until that is loaded, index into the page table
  int record_offset;  // in bytes
  uint32_t tokens;    // bit t: token t is quantized; bit 31: see RowsGoElsewhere()
  int row;            // first row in the inputs

  __device__ uint32_t Quantized() const { return tokens & 0xFFFFU; }
  // Whether rotated rows are also stored outside pages: in a window, or as an output of the call.
  __device__ bool RowsGoElsewhere() const { return tokens >> 31 != 0; }
};

// Byte offsets in shared memory. kNotes: the number of blocks whose TileNotes are kept.
template <int kDim_, int kSlots_, int kNotes>
struct BlockPipelineShared {
  static constexpr int kDim = kDim_, kSlots = kSlots_;
  static constexpr int kRotation = 0;
  static constexpr int kStages = kRotation + 2 * kDim * kDim;
  static constexpr int kNote = kStages + kSlots * kStageBytes<kDim>;
  static constexpr int kFetched = kNote + kNotes * 4 * static_cast<int>(sizeof(TileNote));
  static constexpr int kRotated = kFetched + 8 * kSlots;
  static constexpr int kEmpty = kRotated + 8 * kSlots;
  static constexpr int kRotationThere = kEmpty + 8 * kSlots;
  static constexpr int kBytes = kRotationThere + 8;

  // Returns the notes of a block's four tiles. The kernel decides which `index` a block uses.
  __device__ static TileNote* Notes(uint8_t* shared, int index) {
    return reinterpret_cast<TileNote*>(shared + kNote) + index * 4;
  }
};

// A place in the ring of slots. `round` counts the passes over the ring.
template <int kSlots>
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
__device__ inline TileNote NoteOf(const WriteArguments& a, const SideArguments& s,
                                  const TokenTile& tile, int head) {
  const bool to_rows = tile.tokens != 0 && (s.rotated != nullptr || tile.tokens != tile.quantized);
  return {static_cast<int>(PageOf(a, tile) - a.view.page_table), RecordOffset(a, tile, head),
          tile.quantized | (to_rows ? 1U << 31 : 0), tile.row};
}

// Requests the 16 rows of a tile, from `row` on, for one of a slot's four places. The calling warp
// must be allowed to overwrite that place. One lane calls note() to publish more data together with
// the rows.
template <class Shared, class Note>
__device__ inline void FetchTile(const CUtensorMap* rows, int head, int row, int slot, int place,
                                 const Note& note, uint8_t* shared) {
  constexpr int kDim = Shared::kDim;
  if (threadIdx.x % 32 == 0) {
    auto* fetched = reinterpret_cast<uint64_t*>(shared + Shared::kFetched + 8 * slot);
    uint8_t* const stage = shared + Shared::kStages + slot * kStageBytes<kDim>;
    FenceAsyncProxy();  // threads wrote the slot, and the copy engine writes next
#pragma unroll
    for (int panel = 0; panel < kDim / 64; ++panel)
      CopyTensor(stage + panel * kPanelBytes + place * (kTileTokens * 128), rows, fetched,
                 64 * panel, head, row);
    note();
    BarrierExpect(SharedAddress(fetched), kTileTokens * 2 * kDim);
  }
  __syncwarp();
}

// The blocks of a CTA: every gridDim.x-th block of one head of the keys or the values.
struct PipelineWork {
  int head;
  bool values;
  int blocks;
};
// Returns the index, among all tiles of the call, of tile `place` (0 to 3) in a block of this CTA.
__device__ inline int IndexOfTile(int block, int place) {
  return 4 * (static_cast<int>(blockIdx.x) + block * static_cast<int>(gridDim.x)) + place;
}

// Initializes the barriers, requests R and waits for the previous kernel. All threads must call
// this before anything else.
template <class Shared>
__device__ inline PipelineWork BeginPipeline(const WriteArguments& a, const PipelineMaps& maps,
                                             int first_side, uint8_t* shared) {
  constexpr int kDim = Shared::kDim;
  const int head = static_cast<int>(blockIdx.y);
  const int side = first_side + static_cast<int>(blockIdx.z);
  const int rest = (a.tiles + 3) / 4 - static_cast<int>(blockIdx.x);
  LaunchDependents();
  if (threadIdx.x == 0) {
    for (int i = 0; i < 3 * Shared::kSlots; ++i)  // each of four warps arrives once
      BarrierInit(SharedAddress(shared) + Shared::kFetched + 8 * i, 4);
    auto* there = reinterpret_cast<uint64_t*>(shared + Shared::kRotationThere);
    BarrierInit(SharedAddress(there), 1);
    FenceAsyncProxy();
    BarrierExpect(SharedAddress(there), 2 * kDim * kDim);
    for (int panel = 0; panel < kDim / 64; ++panel)
      CopyTensor(shared + Shared::kRotation + panel * kDim * 128, &maps.rotation[side], there,
                 64 * panel, 0, a.sides[side].rotation_stride != 0 ? head * kDim : 0);
  }
  __syncthreads();
  WaitForPreviousKernel();
  return {head, side == 1, (rest + static_cast<int>(gridDim.x) - 1) / static_cast<int>(gridDim.x)};
}

// Synchronizes all threads of the rotating warpgroup.
__device__ inline void SyncRotators() { asm volatile("bar.sync 1, 128;" ::: "memory"); }

// Rotates all blocks. The first warpgroup runs it. Calls Begin(slot) of a warp's `errands` before
// the products of a block, Beside(block) during them, and End(slot) before others see the rotated
// rows. kHalves: number of parts into which columns are split, one computed after the other to save
// registers. kTogether: number of products issued at a time, so that the quantizing warps, which
// also use tensor cores, get a turn.
template <class Shared, int kHalves, int kTogether, class Errands>
__device__ inline void RotateBlocks(int blocks, Errands& errands, uint8_t* shared) {
  constexpr int kDim = Shared::kDim;
  const uint32_t base = SharedAddress(shared);
  const uint64_t r = WgmmaOperand(base + Shared::kRotation, kDim * 128);
  BarrierWait(base + Shared::kRotationThere, 0);
  RingPlace<Shared::kSlots> place;
#pragma unroll 1
  for (int block = 0; block < blocks; ++block) {
    const uint32_t stage = base + Shared::kStages + place.slot * kStageBytes<kDim>;
    BarrierWait(base + Shared::kFetched + 8 * place.slot, place.round & 1);
    const uint64_t x = WgmmaOperand(stage);
    errands.Begin(place.slot);
    constexpr int kPairs = kDim / 4 / kHalves;
    uint32_t y[kHalves][kPairs];
#pragma unroll 1  // otherwise ptxas drops one of two chains of products
    for (int half = 0; half < kHalves; ++half) {
      float sums[2 * kPairs];
#pragma unroll
      for (int begin = 0; begin < kDim / 16; begin += kTogether) {
        WgmmaBegin();
#pragma unroll
        for (int i = begin; i < begin + kTogether; ++i)
          Wgmma<true>(sums, x + i / 4 * (kPanelBytes / 16) + i % 4 * (32 / 16),
                      r + half * (kDim * 128 / 16) + i * (16 * 128 / 16), i > 0);
        WgmmaEnd();
        if (half == 0 && begin == 0) errands.Beside(block);
        WgmmaWait();
        Hold(sums);
      }
#pragma unroll
      for (int i = 0; i < kPairs; ++i) {
        y[0][i] = y[kHalves - 1][i];
        y[kHalves - 1][i] = PackBf16x2(sums[2 * i], sums[2 * i + 1]);
      }
    }
    SyncRotators();  // all warps have read x by now
#pragma unroll
    for (int i = 0; i < kDim / 16; ++i) {
      const uint32_t* c = &y[4 * i / kPairs][4 * i % kPairs];
      StoreMatrices({c[0], c[1], c[2], c[3]}, StagedFragment(stage, i));
    }
    errands.End(place.slot);
    __syncwarp();
    if (threadIdx.x % 32 == 0) BarrierArrive(base + Shared::kRotated + 8 * place.slot);
    place.Advance(1);
  }
}
#endif

}  // namespace oscar
