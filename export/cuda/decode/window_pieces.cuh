// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Locates the bf16 windows of a request and loads them into shared memory, as tiles of 16 slots. A
// tile comes in pieces of up to 128 dims. A slot without a token may hold any value, even NaN, so
// zeros are loaded in its place.
#pragma once

#include "export/cuda/decode/decode_types.cuh"
#include "export/cuda/device/mma.cuh"

namespace oscar {

// The windows of a request as tiles: sink slots first, then the ring from its oldest token on.
struct WindowTiles {
  int first_sink, num_sink;   // in tiles
  int num_recent;             // tiles with recent tokens, which may wrap around the ring
  int recent;                 // recent tokens
  int oldest;                 // slot of the oldest recent token, set by FindOldestSlot
  int first_recent_position;  // position of the oldest recent token
  int first_position;         // the sliding window begins here
  int num_tokens;             // tokens of the request

  __device__ int count() const { return num_sink + num_recent; }
};

__device__ inline WindowTiles FindWindowTiles(const CacheView& cache, int length, int quantized,
                                              int first_position) {
  WindowTiles w;
  w.num_tokens = length;
  w.first_position = first_position;
  w.first_sink = min(first_position, cache.sink_tokens) / kTileTokens;
  w.num_sink =
      max((min(length, cache.sink_tokens) + kTileTokens - 1) / kTileTokens - w.first_sink, 0);
  w.first_recent_position = cache.sink_tokens + quantized;
  w.recent = max(length - w.first_recent_position, 0);
  // The ring's size is a multiple of a tile, so this is the oldest token's place in its tile.
  const int in_tile = quantized % kTileTokens;
  w.num_recent = w.recent == 0 ? 0
                               : min((in_tile + w.recent + kTileTokens - 1) / kTileTokens,
                                     cache.recent_slots / kTileTokens);
  return w;
}

// Sets w.oldest, which WindowTileSlot and ValidSlots need. It divides, so it is called only for
// requests with window tiles.
__device__ inline void FindOldestSlot(const CacheView& cache, WindowTiles& w) {
  w.oldest = (w.first_recent_position - cache.sink_tokens) % cache.recent_slots;
}

// Returns the first slot of window tile `tile`.
__device__ inline int WindowTileSlot(const WindowTiles& w, const CacheView& cache, int tile) {
  if (tile < w.num_sink) return (w.first_sink + tile) * kTileTokens;
  int slot = w.oldest / kTileTokens * kTileTokens + (tile - w.num_sink) * kTileTokens;
  if (slot >= cache.recent_slots) slot -= cache.recent_slots;
  return cache.sink_tokens + slot;
}

// Returns a mask of the slots of window tile `tile`, which begins at `slot`: bit i is set if slot i
// holds a token that the query sees.
__device__ inline uint32_t ValidSlots(const WindowTiles& w, const CacheView& cache, int tile,
                                      int slot, int lane) {
  slot += lane % kTileTokens;
  if (tile < w.num_sink)
    return __ballot_sync(~0U,
                         slot < min(w.num_tokens, cache.sink_tokens) && slot >= w.first_position);
  int age = slot - cache.sink_tokens - w.oldest;
  if (age < 0) age += cache.recent_slots;
  return __ballot_sync(~0U, age < w.recent && w.first_recent_position + age >= w.first_position);
}

// The windows of one request and KV head.
struct WindowView {
  WindowTiles tiles;
  const __nv_bfloat16 *keys, *values;  // [slots, dim]
};

template <class Shape>
struct WindowPieces {
  static constexpr int kKeyDims = WindowPieceDims(Shape::kK);
  static constexpr int kValueDims = WindowPieceDims(Shape::kV);
  static constexpr int kKeyPieces = Shape::kK / kKeyDims;
  static constexpr int kPerTile = kKeyPieces + Shape::kV / kValueDims;

  // Prefetches a tile into the L2 cache.
  __device__ static void Prefetch(const CacheView& cache, const WindowView& view, int tile,
                                  int lane) {
    const int64_t slot = WindowTileSlot(view.tiles, cache, tile);
    PrefetchRows<kTileTokens * Shape::kK>(view.keys + slot * Shape::kK, lane);
    PrefetchRows<kTileTokens * Shape::kV>(view.values + slot * Shape::kV, lane);
  }

  // Requests piece `piece` of window tile `tile` for a warp. Pieces of keys come first.
  __device__ static void Ask(const CacheView& cache, const WindowView& view, int tile, int piece,
                             uint32_t to, int lane) {
    const int slot = WindowTileSlot(view.tiles, cache, tile);
    const uint32_t valid = ValidSlots(view.tiles, cache, tile, slot, lane);
    if (piece < kKeyPieces)
      AskRows<Shape::kK>(view.keys + int64_t{slot} * Shape::kK + piece * kKeyDims, valid, to, lane);
    else
      AskRows<Shape::kV>(
          view.values + int64_t{slot} * Shape::kV + (piece - kKeyPieces) * kValueDims, valid, to,
          lane);
  }

 private:
  template <int kValues>
  __device__ static void PrefetchRows(const __nv_bfloat16* rows, int lane) {
#pragma unroll
    for (int at = 0; at < kValues; at += 32 * 64)
      if (at + 64 * lane < kValues) PrefetchL2(rows + at + 64 * lane);
  }
  template <int kDim>
  __device__ static void AskRows(const __nv_bfloat16* from, uint32_t valid, uint32_t to, int lane) {
    constexpr int kChunks = WindowPieceDims(kDim) / 8;
#pragma unroll
    for (int i = 0; i < kTileTokens * kChunks; i += 32) {
      const int row = (i + lane) / kChunks, chunk = (i + lane) % kChunks;
      CopyAsync16OrZero(to + row * WindowRowBytes(kDim) + 16 * chunk, from + row * kDim + 8 * chunk,
                        (valid >> row & 1) != 0);
    }
  }
};

}  // namespace oscar
