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
  int first, last;             // tiles of the request
  int first_token, end_token;  // quantized tokens that count
  const int32_t* pages;        // the request's row of the page table
  int head;                    // KV head
};

template <class Shape>
class RecordRing {
 public:
  static constexpr int kTiles = Shape::kStageTiles;

  // `slots`: args.ring_stages * kTiles records; `barriers`: [ring_stages]; both of this warp.
  __device__ RecordRing(const DecodeKernelArguments& args, const TileRange& range, uint8_t* slots,
                        uint64_t* barriers, int lane)
      : args_(args),
        slots_(slots),
        barriers_(SharedAddress(barriers)),
        lane_(lane),
        piece_(min(Shape::kStepTiles, 1 << args.tiles_per_page_log2)),
        tile_(range.first),
        last_(range.last),
        asked_(range.first + lane * piece_),
        pages_(range.pages),
        head_base_(args.call.cache.pages +
                   static_cast<int64_t>(range.head << args.tiles_per_page_log2) * RecordBytes()) {
    if (lane * piece_ >= kTiles) asked_ = last_;  // this lane asks for nothing
    LoadPage();
#if OSCAR_BULK_COPY
    if (lane < args.ring_stages) BarrierInit(barriers_ + 8 * lane, 1);
#endif
  }

  // Asks for the first stages.
  __device__ void Start() {
#if OSCAR_BULK_COPY
    FenceAsyncProxy();
#endif
    __syncwarp();
#pragma unroll 1
    for (int i = 0; i < args_.ring_stages - 1; ++i) Ask();
  }

  __device__ bool done() const { return tile_ >= last_; }
  __device__ int tile() const { return tile_; }  // the first of the next stage
  __device__ int RecordBytes() const {
    return Shape::kGeneral ? args_.record_bytes : Shape::kMaxRecord;
  }

  // The records of the next stage, side by side; asks for the last stage there is room for.
  __device__ const uint8_t* Next() {
#if OSCAR_BULK_COPY
    BarrierWait(barriers_ + 8 * slot_, parity_);
#else
    if (args_.ring_stages == 2)
      CopyAsyncWait<0>();
    else
      CopyAsyncWait<1>();
#endif
    __syncwarp();
    Ask();
    const uint8_t* records = slots_ + slot_ * (kTiles * RecordBytes());
    tile_ += kTiles;
    if (++slot_ == args_.ring_stages) slot_ = 0, parity_ ^= 1;
    return records;
  }

 private:
  // The page of this lane's next piece, long before it is needed.
  __device__ void LoadPage() {
    if (asked_ < last_) page_ = __ldg(pages_ + (asked_ >> args_.tiles_per_page_log2));
  }

  // Lane i asks for piece i of the next stage: neighbouring tiles of one page.
  __device__ void Ask() {
    const int in_page = asked_ & ((1 << args_.tiles_per_page_log2) - 1);
    const int tiles = min(piece_, last_ - asked_);  // zero or less: none
    const uint8_t* from = head_base_ + page_ * args_.page_bytes + in_page * RecordBytes();
    const uint32_t to =
        SharedAddress(slots_) + (asked_slot_ * kTiles + lane_ * piece_) * RecordBytes();
#if OSCAR_BULK_COPY
    const uint32_t barrier = barriers_ + 8 * asked_slot_;
    if (lane_ == 0 && tiles > 0)
      BarrierExpect(barrier, min(kTiles, last_ - asked_) * RecordBytes());
    if (tiles > 0) CopyBulk(to, from, tiles * RecordBytes(), barrier);
#else
    for (int piece = 0; piece * piece_ < kTiles; ++piece) {
      const uint8_t* piece_from = reinterpret_cast<const uint8_t*>(
          __shfl_sync(~0U, reinterpret_cast<uint64_t>(from), piece));
      const int bytes = __shfl_sync(~0U, tiles, piece) * RecordBytes();
      const uint32_t piece_to = __shfl_sync(~0U, to, piece);
      for (int at = 16 * lane_; at < bytes; at += 512) CopyAsync16(piece_to + at, piece_from + at);
    }
    CopyAsyncCommit();
#endif
    if (asked_ < last_) asked_ += kTiles;
    LoadPage();
    if (++asked_slot_ == args_.ring_stages) asked_slot_ = 0;
  }

  const DecodeKernelArguments& args_;
  uint8_t* slots_;
  uint32_t barriers_;
  int lane_;
  int piece_;        // tiles a lane asks for at a time
  int tile_, last_;  // first of the stage to be read next, end of the range
  int asked_;        // of this lane, next to be asked for
  const int32_t* pages_;
  const uint8_t* head_base_;
  int page_ = 0;
  int slot_ = 0, asked_slot_ = 0, parity_ = 0;
};

}  // namespace oscar
