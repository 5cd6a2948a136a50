// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// How records reach a warp: a ring of stages in shared memory, filled ahead of where the warp
// computes. Bulk copies where the chip has them (sm_90), else 16-byte asynchronous copies. Trap:
// lanes read what other lanes, or the copy engine, brought, so a stage is waited for by all lanes
// together, and its slot is asked to be filled again only after all lanes have read it.
#pragma once

#include "export/cuda/decode/decode_types.cuh"
#include "export/cuda/device/mma.cuh"

namespace oscar {

// A warp's quantized tiles.
struct TileRange {
  int first, last;             // tiles of the request; `first` is even
  int first_token, end_token;  // quantized tokens that count
  const int32_t* pages;        // the request's row of the page table
  int head;                    // KV head
};

template <class Shape>
class RecordRing {
 public:
  static constexpr int kTiles = Shape::kStageTiles, kStages = Shape::kStages;

  // `slots`: kRingTiles records of kMaxRecord bytes; `barriers`: [kStages], both of this warp.
  __device__ RecordRing(const DecodeKernelArguments& args, const TileRange& range, uint8_t* slots,
                        uint64_t* barriers, int lane)
      : slots_(slots),
        lane_(lane),
        last_(range.last),
        num_stages_((range.last - range.first + kTiles - 1) / kTiles),
        record_bytes_(Shape::kGeneral ? args.record_bytes : Shape::kMaxRecord),
        page_shift_(args.tiles_per_page_log2),
        piece_(min(Shape::kStepTiles, 1 << page_shift_)),
        tile_(range.first + lane * piece_),
        page_bytes_(args.page_bytes),
        pages_(range.pages),
        head_base_(args.call.cache.pages +
                   static_cast<int64_t>(range.head << page_shift_) * record_bytes_),
        barriers_(SharedAddress(barriers)) {
    if (lane * piece_ >= kTiles) tile_ = last_;  // this lane asks for nothing
    LoadPage();
#if OSCAR_BULK_COPY
    if (lane < kStages) BarrierInit(barriers_ + 8 * lane, 1);
#endif
  }

  // Asks for the first stages.
  __device__ void Start() {
#if OSCAR_BULK_COPY
    FenceAsyncProxy();
#endif
    __syncwarp();
#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) Issue(stage);
  }

  // The records of a stage, [kTiles] of kMaxRecord bytes; asks for the last one there is room for.
  __device__ const uint8_t* Next(int stage) {
#if OSCAR_BULK_COPY
    BarrierWait(barriers_ + 8 * (stage % kStages), stage / kStages % 2);
#else
    CopyAsyncWait<kStages - 2>();
#endif
    __syncwarp();
    Issue(stage + kStages - 1);
    return slots_ + stage % kStages * (kTiles * Shape::kMaxRecord);
  }

  __device__ int num_stages() const { return num_stages_; }

 private:
  // The page of this lane's next piece, long before it is needed.
  __device__ void LoadPage() {
    if (tile_ < last_) page_ = __ldg(pages_ + (tile_ >> page_shift_));
  }

  // Lane i asks for piece i of the stage: neighbouring tiles of one page.
  __device__ void Issue(int stage) {
    if (stage < num_stages_) {
      const int slot = stage % kStages;
      const uint8_t* from =
          head_base_ + page_ * page_bytes_ + (tile_ & ((1 << page_shift_) - 1)) * record_bytes_;
      const int tiles = min(piece_, last_ - tile_);  // zero or less: none
      const uint32_t to =
          SharedAddress(slots_) + (slot * kTiles + lane_ * piece_) * Shape::kMaxRecord;
#if OSCAR_BULK_COPY
      if (lane_ == 0)
        BarrierExpect(barriers_ + 8 * slot, min(kTiles, last_ - tile_) * record_bytes_);
      if (tiles > 0) {
        if (!Shape::kGeneral || record_bytes_ == Shape::kMaxRecord) {
          CopyBulk(to, from, tiles * record_bytes_, barriers_ + 8 * slot);
        } else {
          for (int i = 0; i < tiles; ++i)
            CopyBulk(to + i * Shape::kMaxRecord, from + i * record_bytes_, record_bytes_,
                     barriers_ + 8 * slot);
        }
      }
#else
      for (int piece = 0; piece * piece_ < kTiles; ++piece) {
        const uint64_t address = __shfl_sync(~0U, reinterpret_cast<uint64_t>(from), piece);
        const int count = __shfl_sync(~0U, tiles, piece);
        const uint32_t piece_to = __shfl_sync(~0U, to, piece);
        for (int i = 0; i < count; ++i)
          for (int at = 16 * lane_; at < record_bytes_; at += 512)
            CopyAsync16(piece_to + i * Shape::kMaxRecord + at,
                        reinterpret_cast<const uint8_t*>(address) + i * record_bytes_ + at);
      }
#endif
      if (tile_ < last_) tile_ += kTiles;
      LoadPage();
    }
#if !OSCAR_BULK_COPY
    CopyAsyncCommit();
#endif
  }

  uint8_t* slots_;
  int lane_, last_, num_stages_, record_bytes_, page_shift_;
  int piece_;  // tiles one lane asks for
  int tile_;   // of this lane, next to be asked for
  int64_t page_bytes_;
  const int32_t* pages_;
  const uint8_t* head_base_;
  uint32_t barriers_;
  int page_ = 0;
};

}  // namespace oscar
