// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// How records reach a warp: a ring of stages in shared memory, filled ahead of where the warp
// computes. Bulk copies where the chip has them (sm_90), else 16-byte asynchronous copies. Trap:
// lanes read what other lanes, or the copy engine, brought, so a stage is waited for by all lanes
// together, and its slot is asked to be filled again only after all lanes have read it. Pages
// smaller than a stage hold one tile (16 tokens).
#pragma once

#include "export/cuda/decode/decode_types.cuh"
#include "export/cuda/device/mma.cuh"

namespace oscar {

// A warp's quantized tiles.
struct TileRange {
  int first, last;             // tiles of the request
  int first_token, end_token;  // quantized tokens that count
  const int32_t* pages;        // the request's row of the page table
  int head;                    // KV head
};

template <class Shape>
class RecordRing {
 public:
  static constexpr int kTiles = Shape::kStageTiles;

  // `slots`: [stages, kTiles] records; `barriers`: [stages]; both of this warp.
  __device__ RecordRing(const DecodeKernelArguments& args, const TileRange& range, uint8_t* slots,
                        uint64_t* barriers, int lane)
      : args_(args),
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
    if (lane < Stages()) BarrierInit(barriers_ + 8 * lane, 1);
#endif
  }

  __device__ int Stages() const { return Shape::kGeneral ? args_.ring_stages : Shape::kRingStages; }
  __device__ int StageBytes() const { return kTiles * RecordBytes(); }
  __device__ int StagesOf(int bytes) const { return (bytes + StageBytes() - 1) / StageBytes(); }

  // Asks for the next stages, of which there must be free slots.
  __device__ void Start(int stages) {
#if OSCAR_BULK_COPY
    FenceAsyncProxy();
#endif
    __syncwarp();
#pragma unroll 1
    for (int i = 0; i < stages; ++i) Ask();
  }

  // Tiles [tile, end) are the next stage: up to a multiple of kTiles, so that it lies in one page
  // where pages are as large.
  __device__ bool done() const { return tile_ >= last_; }
  __device__ int tile() const { return tile_; }
  __device__ int end() const { return EndOf(tile_); }
  __device__ int RecordBytes() const {
    return Shape::kGeneral ? args_.record_bytes : Shape::kMaxRecord;
  }

  // The records of the next stage, side by side, once they are there.
  __device__ const uint8_t* Wait() const {
#if OSCAR_BULK_COPY
    BarrierWait(barriers_ + 8 * slot_, parity_);
#else
    if (Stages() == 2)
      CopyAsyncWait<1>();
    else
      CopyAsyncWait<2>();
    __syncwarp();
#endif
    return slots_ + slot_ * StageBytes();
  }
  // All of this stage was read: its slot is asked to be filled again.
  __device__ void Release() {
    tile_ = end();
    if (++slot_ == Stages()) slot_ = 0, parity_ ^= 1;
    __syncwarp();
    Ask();
  }

 private:
  __device__ int EndOf(int tile) const { return min((tile / kTiles + 1) * kTiles, last_); }

  // The page of the next stage, long before it is needed; in lane i that of its tile i where pages
  // are smaller than stages.
  __device__ void LoadPage() {
    const int tile = asked_ + (whole_ ? 0 : lane_);
    if (tile < last_) page_ = __ldg(pages_ + (tile >> args_.tiles_per_page_log2));
  }

  __device__ void Ask() {
    if (asked_ < last_) {
      const int count = EndOf(asked_) - asked_;
      const uint32_t barrier = barriers_ + 8 * asked_slot_;
      const uint32_t to = SharedAddress(slots_) + asked_slot_ * StageBytes();
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
      if (++asked_slot_ == Stages()) asked_slot_ = 0;
      LoadPage();
    }
#if !OSCAR_BULK_COPY
    CopyAsyncCommit();
#endif
  }

  __device__ void Copy(uint32_t to, const uint8_t* from, int bytes, uint32_t barrier) {
#if OSCAR_BULK_COPY
    if (lane_ == 0) CopyBulk(to, from, bytes, barrier);
#else
    for (int at = 16 * lane_; at < bytes; at += 512) CopyAsync16(to + at, from + at);
#endif
  }

  const DecodeKernelArguments& args_;
  uint8_t* slots_;
  uint32_t barriers_;
  int lane_;
  bool whole_;       // a stage lies in one page
  int tile_, last_;  // first of the stage to be read next, end of the range
  int asked_;        // next to be asked for
  const int32_t* pages_;
  const uint8_t* head_base_;
  int page_ = 0;
  int slot_ = 0, asked_slot_ = 0, parity_ = 0;
};

}  // namespace oscar
