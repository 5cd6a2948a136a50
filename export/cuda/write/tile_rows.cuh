// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies rows of a warp's tile between device and shared memory, 16 bytes at a time. Rows in device
// memory must be 16-byte aligned, so the caller's pointers must be aligned too.
#pragma once

#include "export/cuda/cache/cache_format.h"
#include "export/cuda/write/rotate_tile.cuh"  // RowStride

namespace oscar {

// Copies the tile's rows from the pointers row_of(t) to shared memory. A null pointer gives a row
// of zeros.
template <typename RowOf>
__device__ inline void LoadTileRows(__nv_bfloat16* tile, int dim, RowOf row_of) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int t = 0; t < kTileTokens; ++t) {
    const __nv_bfloat16* row = row_of(t);
    for (int i = lane; i < dim / 8; i += 32)
      reinterpret_cast<uint4*>(tile + t * RowStride(dim))[i] =
          row != nullptr ? reinterpret_cast<const uint4*>(row)[i] : make_uint4(0, 0, 0, 0);
  }
  __syncwarp();
}

// Copies the tile's rows to the pointers row_of(t). Skips rows with a null pointer.
template <typename RowOf>
__device__ inline void StoreTileRows(const __nv_bfloat16* tile, int dim, RowOf row_of) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int t = 0; t < kTileTokens; ++t) {
    __nv_bfloat16* row = row_of(t);
    if (row == nullptr) continue;
    for (int i = lane; i < dim / 8; i += 32)
      reinterpret_cast<uint4*>(row)[i] =
          reinterpret_cast<const uint4*>(tile + t * RowStride(dim))[i];
  }
}

}  // namespace oscar
