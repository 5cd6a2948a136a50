// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A warp's ring of two stages in shared memory, which is filled ahead of the computation: first
// with records, then with pieces of window tiles. Records use bulk copies on GPUs that have them
// (sm_90); everything else uses 16-byte asynchronous copies. Lanes read data that other lanes or
// the copy engine loaded. So all lanes wait for a stage together, and it is refilled only after all
// lanes have read it. A page that is smaller than a stage has exactly one tile (16 tokens).
#pragma once

#include "export/cuda/decode/decode_types.cuh"
#include "export/cuda/decode/window_pieces.cuh"
#include "export/cuda/device/mma.cuh"

namespace oscar {

// The quantized tiles of a warp.
struct TileRange {
  int first, last;             // tile indices within the request
  int first_token, end_token;  // the quantized tokens that count
  const int32_t* pages;        // the request's row of the page table
  int head;                    // KV head
};

template <class Shape>
class RecordRing {
 public:
  static constexpr int kTiles = Shape::kStageTiles;

  // `slots`: [kRingStages, StageBytes()]; `barriers`: [kRingStages]; both belong to this warp.
  // `windows` is in shared memory and must be filled before the first Release().
  __device__ RecordRing(const DecodeKernelArguments& args, const TileRange& range, uint8_t* slots,
                        uint64_t* barriers, const WindowView& windows, int lane)
      : args_(args),
        windows_(windows),
        slots_(slots),
        barriers_(SharedAddress(barriers)),
        lane_(lane),
        whole_((1 << args.tiles_per_page_log2) >= kTiles),
        tile_(range.first),
        last_(range.last),
        asked_(range.first),
        pages_(range.pages),
        head_base_(args.call.cache.pages +
                   static_cast<int64_t>(range.head << args.tiles_per_page_log2) * RecordBytes()) {
    LoadPage();
#if OSCAR_BULK_COPY
    if (lane < kRingStages) BarrierInit(barriers_ + 8 * lane, 1);
#endif
  }

  __device__ int StageBytes() const { return Shape::StageBytes(RecordBytes()); }

  // Requests the first records.
  __device__ void Start() {
#if OSCAR_BULK_COPY
    FenceAsyncProxy();
#endif
    __syncwarp();
#pragma unroll 1
    while (asks_ < kRingStages && asked_ < last_) ++asks_, Ask(windows_);
  }
  // Appends window tiles [first, last) after the records. `windows`: this thread's copy of the
  // constructor's argument.
  __device__ void AddWindows(const WindowView& windows, int first, int last) {
    piece_ = first * Pieces::kPerTile;
    last_piece_ = last * Pieces::kPerTile;
#pragma unroll 1
    for (; asks_ < kRingStages; ++asks_) Ask(windows);
  }

  // The next stage has tiles [tile(), end()). Stages end at multiples of kTiles, so that each lies
  // in one page if pages are that large. Once done() is true, the next stages are pieces of window
  // tiles.
  __device__ bool done() const { return tile_ >= last_; }
  __device__ int tile() const { return tile_; }
  __device__ int end() const { return EndOf(tile_); }
  __device__ int RecordBytes() const {
    return Shape::kGeneral ? args_.record_bytes : Shape::kMaxRecord;
  }

  // Waits for the records of the next stage, which are adjacent.
  __device__ const uint8_t* Wait() const {
#if OSCAR_BULK_COPY
    BarrierWait(barriers_ + 8 * slot_, parity_);
    return slots_ + slot_ * StageBytes();
#else
    return WaitForPiece();
#endif
  }
  // Waits for the rows of the next piece.
  __device__ const uint8_t* WaitForPiece() const {
    CopyAsyncWait<kRingStages - 1>();
    __syncwarp();
    return slots_ + slot_ * StageBytes();
  }
  // Marks this stage as read and requests data for its slot.
  __device__ void Release() {
    tile_ = end();
    if (++slot_ == kRingStages) slot_ = 0, parity_ ^= 1;
    __syncwarp();
    Ask(windows_);
  }

 private:
  using Pieces = WindowPieces<Shape>;

  __device__ int EndOf(int tile) const { return min((tile / kTiles + 1) * kTiles, last_); }

  // Loads the page number of the next stage long before it is needed. If pages are smaller than
  // stages, lane i loads the number for tile i of the stage.
  __device__ void LoadPage() {
    const int tile = asked_ + (whole_ ? 0 : lane_);
    if (tile < last_) page_ = __ldg(pages_ + (tile >> args_.tiles_per_page_log2));
  }

  __device__ void Ask(const WindowView& windows) {
    const uint32_t barrier = barriers_ + 8 * asked_slot_;
    const uint32_t to = SharedAddress(slots_) + asked_slot_ * StageBytes();
    if (asked_ < last_) {
      const int count = EndOf(asked_) - asked_;
#if OSCAR_BULK_COPY
      if (lane_ == 0) BarrierExpect(barrier, count * RecordBytes());
#endif
      if (whole_) {
        const int in_page = asked_ & ((1 << args_.tiles_per_page_log2) - 1);
        Copy(to, head_base_ + page_ * args_.page_bytes + in_page * RecordBytes(),
             count * RecordBytes(), barrier);
      } else {
#pragma unroll 1
        for (int i = 0; i < count; ++i)
          Copy(to + i * RecordBytes(), head_base_ + __shfl_sync(~0U, page_, i) * args_.page_bytes,
               RecordBytes(), barrier);
      }
      asked_ += count;
      LoadPage();
    } else if (piece_ < last_piece_) {
      Pieces::Ask(args_.call.cache, windows, piece_ / Pieces::kPerTile, piece_ % Pieces::kPerTile,
                  to, lane_);
      ++piece_;
    }
    if (++asked_slot_ == kRingStages) asked_slot_ = 0;
    CopyAsyncCommit();  // even without copies, because waits count commits
  }

  __device__ void Copy(uint32_t to, const uint8_t* from, int bytes, uint32_t barrier) {
#if OSCAR_BULK_COPY
    if (lane_ == 0) CopyBulk(to, from, bytes, barrier);
#else
    for (int at = 16 * lane_; at < bytes; at += 512) CopyAsync16(to + at, from + at);
#endif
  }

  const DecodeKernelArguments& args_;
  const WindowView& windows_;
  uint8_t* slots_;
  uint32_t barriers_;
  int lane_;
  bool whole_;       // whether a stage lies in one page
  int tile_, last_;  // first tile of the next stage to read, and end of the range
  int asked_;        // the next tile to request
  const int32_t* pages_;
  const uint8_t* head_base_;
  int page_ = 0;
  int slot_ = 0, asked_slot_ = 0, parity_ = 0;
  int asks_ = 0;                    // requests before the first release
  int piece_ = 0, last_piece_ = 0;  // next piece of a window tile to request, and the end
};

}  // namespace oscar
