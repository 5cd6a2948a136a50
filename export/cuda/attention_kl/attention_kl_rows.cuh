// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows and keys that a CTA, a warp and a thread of attention-KL work on. Positions come from
// the caller's memory and are clamped to the sequence. Virtual rows past the last one repeat it,
// and their results are not stored.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "export/cuda/attention_kl/attention_kl_params.h"

namespace oscar::kl {

__device__ __forceinline__ int RowPosition(const KlParams& p, int vrow) {
  const int row = min(vrow, p.num_vrows - 1) / p.gqa_ratio;
  if (p.positions == nullptr) return row;
  const int64_t position = p.positions[row];
  return static_cast<int>(min(max(position, int64_t{0}), static_cast<int64_t>(p.tokens - 1)));
}

__device__ __forceinline__ int FirstVisible(const KlParams& p, int position) {
  return p.window > 0 ? max(0, position - p.window + 1) : 0;
}

// The keys [begin, end) of a chunk that a tile of virtual rows, from `first` on, sees. `begin` is
// rounded down to a tile of keys.
struct KeyRange {
  int begin, end;
};
__device__ __forceinline__ KeyRange KeysOf(const KlParams& p, int first, int chunk) {
  const int visible = FirstVisible(p, RowPosition(p, first));
  const int end = RowPosition(p, first + p.tile_rows - 1) + 1;
  return {max(visible / p.tile_keys * p.tile_keys, chunk * p.chunk_keys),
          static_cast<int>(min(static_cast<int64_t>(end), (chunk + int64_t{1}) * p.chunk_keys))};
}

// The keys that a thread's two rows and its warp's sixteen rows see.
struct RowKeys {
  int last[2];                 // the last visible key of each row
  int plain_begin, plain_end;  // no row of the warp needs a mask for keys in [begin, end)
};

__device__ __forceinline__ RowKeys RowKeysOf(const KlParams& p, int warp_vrow, int lane) {
  RowKeys keys;
  for (int h = 0; h < 2; ++h) keys.last[h] = RowPosition(p, warp_vrow + lane / 4 + 8 * h);
  keys.plain_begin = max(p.sink, FirstVisible(p, RowPosition(p, warp_vrow + 15)));
  keys.plain_end = RowPosition(p, warp_vrow) - p.recent + 1;
  return keys;
}

// Whether the query at position `last` reads `key` exactly. Also true for keys after `last`.
__device__ __forceinline__ bool IsExact(const KlParams& p, int last, int key) {
  return key < p.sink || key > last - p.recent;
}

// Returns the byte offset of the 16-byte `piece` of a row in a tile of `rows` rows. The tile
// consists of swizzled panels [rows][128 bytes], 64 values wide.
__device__ __forceinline__ uint32_t PanelOffset(int rows, int row, int piece) {
  return static_cast<uint32_t>(piece / 8 * rows * 128 + row * 128 + ((piece % 8) ^ (row % 8)) * 16);
}

// Loads queries of virtual rows [first, first + kRows) into shared memory, in groups of 64
// rows.
template <int kRows, int kDim>
__device__ __forceinline__ void LoadQueries(const KlParams& p, const __nv_bfloat16* q, int kv_head,
                                            int first, uint8_t* tile) {
  constexpr int kPieces = kDim / 8;  // 16 bytes each
  for (int i = threadIdx.x; i < kRows * kPieces; i += blockDim.x) {
    const int row = i / kPieces, piece = i % kPieces;
    const int vrow = min(first + row, p.num_vrows - 1);
    const int head = kv_head * p.gqa_ratio + vrow % p.gqa_ratio;
    const int64_t offset =
        (static_cast<int64_t>(RowPosition(p, vrow)) * p.num_q_heads + head) * p.head_dim;
    const uint4 value = piece * 8 < p.head_dim ? reinterpret_cast<const uint4*>(q + offset)[piece]
                                               : make_uint4(0, 0, 0, 0);
    *reinterpret_cast<uint4*>(tile + row / 64 * (64 * kDim * 2) +
                              PanelOffset(64, row % 64, piece)) = value;
  }
}

// The work of a CTA. Tiles with many keys come first. KV heads come one after the other, so that
// their keys stay in the L2 cache.
struct WorkItem {
  int tile, chunk, kv_head;
};
__device__ __forceinline__ WorkItem WorkItemOf(const KlParams& p, int index) {
  const int tiles = (p.num_vrows + p.tile_rows - 1) / p.tile_rows;
  const int per_head = tiles * p.num_chunks;
  const int rest = index % per_head;
  return {tiles - 1 - rest / p.num_chunks, rest % p.num_chunks, index / per_head};
}

}  // namespace oscar::kl
