// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The tokens of a tile in a write, and their destinations. A tile is 16 neighbouring positions that
// start at a multiple of 16, so that its quantized tokens share one record. Its first and last
// tokens may lie outside the call, or go to the windows instead of pages.
#pragma once

#include "export/cuda/write/write_arguments.h"

namespace oscar {

struct TokenTile {
  int request = 0;
  int position = 0;        // position of token 0, a multiple of 16
  int row = 0;             // row of token 0 in the inputs; undefined for tokens outside the call
  uint32_t tokens = 0;     // bit t: token t is written by this call
  uint32_t quantized = 0;  // bit t: token t goes into pages
};

__device__ inline uint32_t TokenMask(int begin, int end) {  // bits [begin, end)
  const int low = min(max(begin, 0), kTileTokens);
  const int high = min(max(end, 0), kTileTokens);
  return low < high ? (1U << high) - (1U << low) : 0;
}

// Walks forward through the tiles of a prefill. The tiles of request r start at index row_begin[r]
// / 16 + 2 r, which leaves room for its partial tiles. Unused indices between requests give tiles
// without tokens.
struct PrefillCursor {
  int request = 0;
  int end_index = -1;       // end of the request's tile indices
  int position_shift = 0;   // the position of token 0 in tile 0
  int row_shift = 0;        // row in the inputs minus position
  int full_begin = 0;       // first position of the tiles that are quantized as a whole
  unsigned full_count = 0;  // number of positions in such tiles
};

// Positions [begin, end) of a request's tokens in the call. Tokens at positions before
// quantized_end, except sinks, are quantized.
struct RequestTokens {
  int begin, end, quantized_end;
};
__device__ inline RequestTokens TokensOf(const WriteArguments& a, int request) {
  const int begin = a.position_begin != nullptr ? a.position_begin[request] : 0;
  return {begin, begin + a.row_begin[request + 1] - a.row_begin[request],
          a.view.sink_tokens + a.view.quantized[request]};
}

__device__ inline void FindRequest(const WriteArguments& a, int index, PrefillCursor& cursor) {
  const auto first_tile = [&](int request) {
    return static_cast<int>(static_cast<unsigned>(a.row_begin[request]) / kTileTokens) +
           2 * request;
  };
  int low = 0;
  int high = a.view.num_requests;  // the request is in [low, high)
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (first_tile(middle) <= index ? low : high) = middle;
  }
  const RequestTokens tokens = TokensOf(a, low);
  cursor.request = low;
  cursor.end_index = low + 1 < a.view.num_requests ? first_tile(low + 1) : a.tiles;
  cursor.position_shift = (tokens.begin / kTileTokens - first_tile(low)) * kTileTokens;
  cursor.row_shift = a.row_begin[low] - tokens.begin;
  cursor.full_begin = max(tokens.begin, a.view.sink_tokens);
  cursor.full_count = static_cast<unsigned>(
      max(min(tokens.end, tokens.quantized_end) - (kTileTokens - 1) - cursor.full_begin, 0));
}

// Returns tile `index` of a prefill. Indices must not decrease from call to call.
__device__ inline TokenTile PrefillTile(const WriteArguments& a, int index, PrefillCursor& cursor) {
  if (index >= cursor.end_index) FindRequest(a, index, cursor);
  TokenTile tile;
  tile.request = cursor.request;
  tile.position = index * kTileTokens + cursor.position_shift;
  tile.row = tile.position + cursor.row_shift;
  if (static_cast<unsigned>(tile.position - cursor.full_begin) < cursor.full_count) {
    tile.tokens = tile.quantized = 0xFFFFU;
  } else {
    const RequestTokens tokens = TokensOf(a, cursor.request);
    tile.tokens = TokenMask(tokens.begin - tile.position, tokens.end - tile.position);
    tile.quantized = tile.tokens & TokenMask(a.view.sink_tokens - tile.position,
                                             tokens.quantized_end - tile.position);
  }
  return tile;
}

// Returns tile `index` of the tokens that a flush moves in a request.
__device__ inline TokenTile FlushTile(const WriteArguments& a, int request, int index) {
  const int begin = a.quantized_before[request];
  const int end = a.view.quantized[request];
  const int first = (begin / kTileTokens + index) * kTileTokens;
  TokenTile tile;
  tile.request = request;
  tile.position = a.view.sink_tokens + first;
  tile.tokens = TokenMask(begin - first, end - first);
  tile.quantized = tile.tokens;
  return tile;
}

// Returns the index of the first value of token t's row in the inputs, which is the same in rotated
// rows.
__device__ inline int64_t InputOffset(const WriteArguments& a, const SideArguments& s,
                                      const TokenTile& tile, int t, int head) {
  return (int64_t{tile.row + t} * a.view.num_kv_heads + head) * s.side.dim;
}

__device__ inline int WindowSlot(const CacheView& view, int position) {
  return position < view.sink_tokens
             ? position
             : view.sink_tokens + (position - view.sink_tokens) % view.recent_slots;
}

// Returns the row of `position` in the windows of a request and head.
__device__ inline __nv_bfloat16* WindowRow(const CacheView& view, int request, int head,
                                           bool values, int position) {
  const int64_t window = int64_t{view.window_of_request[request]} * view.num_kv_heads + head;
  const int dim = values ? view.format.v.dim : view.format.k.dim;
  return view.windows + window * WindowHeadValues(view) +
         (values ? int64_t{WindowSlots(view)} * view.format.k.dim : 0) +
         int64_t{WindowSlot(view, position)} * dim;
}

// Returns the page table entry of a tile that holds quantized tokens.
__device__ inline const int32_t* PageOf(const WriteArguments& a, const TokenTile& tile) {
  const auto token = static_cast<unsigned>(tile.position - a.view.sink_tokens);
  return a.view.page_table + int64_t{tile.request} * a.view.page_table_stride +
         (token >> a.page_tokens_log2);
}
// Returns the byte offset of a tile's record in its page.
__device__ inline int RecordOffset(const WriteArguments& a, const TokenTile& tile, int head) {
  const auto token = static_cast<unsigned>(tile.position - a.view.sink_tokens);
  const auto record = static_cast<int>(
      (token & static_cast<unsigned>(a.view.format.page_tokens - 1)) / kTileTokens);
  return head * a.head_bytes + record * a.record_bytes;
}
__device__ inline uint8_t* TileRecord(const WriteArguments& a, const TokenTile& tile, int head) {
  return a.view.pages + int64_t{*PageOf(a, tile)} * a.page_bytes + RecordOffset(a, tile, head);
}

}  // namespace oscar
