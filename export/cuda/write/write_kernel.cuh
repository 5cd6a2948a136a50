// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The write kernel for any dimension, bits and group. A warp moves a tile of one head of the keys
// or values through shared memory. Warps without a tile still help to load R. Grid: [tiles / warps,
// heads, keys and values], in a flush [tiles of a request, heads x requests, keys and values].
#pragma once

#include "export/cuda/write/feedback_tile.cuh"
#include "export/cuda/write/rotate_tile.cuh"
#include "export/cuda/write/tile_codec.cuh"
#include "export/cuda/write/tile_rows.cuh"

namespace oscar {

// Bytes of shared memory per CTA.
constexpr int WriteSharedBytes(const PagedSide& side, int warps, bool rotated) {
  const int tile = kTileTokens * RowStride(side.dim) * 2;
  return warps * (tile * (rotated ? 2 : 1) + CodeBytes(side) + TileFitBytes(side)) +
         (rotated ? 2 * kPieceValues * 2 : 0);
}

template <bool kFeedback>
__global__ void WriteKernel(const __grid_constant__ WriteArguments a, int first_side) {
  extern __shared__ __align__(16) uint8_t shared[];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const bool values = first_side + blockIdx.z == 1;
  const SideArguments& s = a.sides[values ? 1 : 0];
  const int dim = s.side.dim;
  const int head = static_cast<int>(blockIdx.y) % a.view.num_kv_heads;
  const bool flush = a.quantized_before != nullptr;
  const bool rotated = s.rotation != nullptr;

  const int tile_values = kTileTokens * RowStride(dim);
  auto* pieces = reinterpret_cast<__nv_bfloat16*>(shared);
  auto* x = pieces + (rotated ? 2 * kPieceValues : 0) + warp * tile_values * (rotated ? 2 : 1);
  auto* y = rotated ? x + tile_values : x;
  const int plane_bytes = CodeBytes(s.side) + TileFitBytes(s.side);
  auto* planes = reinterpret_cast<uint32_t*>(shared + WriteSharedBytes(s.side, warps, rotated) -
                                             (warps - warp) * plane_bytes);

  int index = static_cast<int>(blockIdx.x) * warps + warp;
  const int request = static_cast<int>(blockIdx.y) / a.view.num_kv_heads;
  PrefillCursor cursor;
  TokenTile tile = flush             ? FlushTile(a, request, index)
                   : index < a.tiles ? PrefillTile(a, index, cursor)
                                     : TokenTile{};
  do {
    LoadTileRows(x, dim, [&](int t) -> const __nv_bfloat16* {
      if (((tile.tokens >> t) & 1) == 0) return nullptr;
      return flush ? WindowRow(a.view, tile.request, head, values, tile.position + t)
                   : s.x + InputOffset(a, s, tile, t, head);
    });
    if (rotated) RotateTile(x, s.rotation + head * s.rotation_stride, dim, y, pieces);
    if (s.rotated != nullptr) {
      StoreTileRows(y, dim, [&](int t) {
        return ((tile.tokens >> t) & 1) != 0 ? s.rotated + InputOffset(a, s, tile, t, head)
                                             : nullptr;
      });
    }
    const uint32_t windowed = tile.tokens & ~tile.quantized;
    if (windowed != 0) {
      StoreTileRows(y, dim, [&](int t) {
        return ((windowed >> t) & 1) != 0
                   ? WindowRow(a.view, tile.request, head, values, tile.position + t)
                   : nullptr;
      });
    }
    if (tile.quantized != 0) {
      const auto quantize = kFeedback ? QuantizeTileWithFeedback : QuantizeTile;
      quantize(a, s, tile, head, reinterpret_cast<uint32_t*>(y), RowStride(dim) / 2, planes,
               reinterpret_cast<AffineGroup<float>*>(planes + CodeBytes(s.side) / 4));
    }
    if (!flush) break;
    index += static_cast<int>(gridDim.x) * warps;
    tile = FlushTile(a, request, index);
    __syncwarp();
  } while (tile.tokens != 0);
}

}  // namespace oscar
