// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Which 16 x 16 tiles of a symmetric matrix which warp computes, so that each unordered pair of
// feature blocks is computed once and all warps do the same work.
//
// A matrix is cut into diagonal panels of 128 features (64 where the whole matrix fits) and squares
// of 128 x 64 features right of them; a CTA computes one of either. In a panel of n blocks of 16
// features, the circulant cover: warp w owns the block rows w and w + n / 2; row i takes the block
// columns i .. i + n / 2 - 1 modulo n, and the first of the two rows also i + n / 2.
//
// A tile may lie left of its mirror image; GramReduceKernel writes both.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace oscar {

inline constexpr int kPanel = 128;         // features
inline constexpr int kSquareColumns = 64;  // features

// What a CTA works on.
struct GramRegion {
  int rows;     // first feature of the panel
  int columns;  // first feature of the columns of a square; unused in a panel
  bool square;
};

// Regions of a matrix: panels first, then squares row by row.
__host__ __device__ constexpr int GramPanels(int dim) { return (dim + kPanel - 1) / kPanel; }
__host__ __device__ constexpr int GramHalfPanels(int dim) {
  return (dim + kSquareColumns - 1) / kSquareColumns;
}
__host__ __device__ constexpr int GramSquaresOfPanel(int dim, int panel) {
  const int right = GramHalfPanels(dim) - 2 * (panel + 1);
  return right > 0 ? right : 0;
}
__host__ __device__ constexpr int GramRegions(int dim) {
  int regions = GramPanels(dim);
  for (int panel = 0; panel < GramPanels(dim); ++panel) regions += GramSquaresOfPanel(dim, panel);
  return regions;
}
__host__ __device__ constexpr GramRegion GramRegionOf(int dim, int index) {
  if (index < GramPanels(dim)) return {index * kPanel, 0, false};
  index -= GramPanels(dim);
  int panel = 0;
  while (index >= GramSquaresOfPanel(dim, panel)) index -= GramSquaresOfPanel(dim, panel++);
  return {panel * kPanel, (2 * (panel + 1) + index) * kSquareColumns, true};
}

// kRowBlocks: 16-feature blocks of a panel, 4 or 8; kSquares: whether there are squares as well.
template <int kRowBlocks_, bool kSquares_>
struct GramCover {
  static constexpr int kRowBlocks = kRowBlocks_;
  static constexpr bool kSquares = kSquares_;
  static constexpr int kWarps = kRowBlocks / 2;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kHalf = kRowBlocks / 2;
  static constexpr int kColumnBlocks = kSquareColumns / 16;                    // of a square
  static constexpr int kBlocks = kRowBlocks + (kSquares ? kColumnBlocks : 0);  // staged
  static constexpr int kPanelTiles = kRowBlocks + 1;                           // per warp
  static constexpr int kSquareTiles = 2 * kColumnBlocks;                       // per warp
  static constexpr int kTiles = kPanelTiles;                                   // of either, at most
  static_assert(kSquareTiles <= kPanelTiles || !kSquares);

  // Accumulators of one thread, in pairs: [tile][8-column half][row half] of (column 2t, 2t + 1).
  static constexpr int kPairs = kTiles * 4;

  // Block row and block column of a warp's tile.
  struct Tile {
    int row, column;
  };
  __host__ __device__ static constexpr Tile TileOf(bool square, int warp, int tile) {
    if (square)
      return {tile < kColumnBlocks ? warp : warp + kHalf, kRowBlocks + tile % kColumnBlocks};
    if (tile <= kHalf) return {warp, (warp + tile) % kRowBlocks};
    return {warp + kHalf, (warp + tile - 1) % kRowBlocks};
  }
};

// The k-th step of a panel: block (warp + k) % kRowBlocks is column of tile k of the first row
// (k <= kHalf) and of tile k + 1 of the second (k >= kHalf). TileOf says the same.

// Workspace: one partial per (KV head, region, split), [kPairs][kThreads] double2.
__host__ __device__ inline int64_t GramPartial(int kv_head, int region, int split, int regions,
                                               int splits) {
  return (static_cast<int64_t>(kv_head) * regions + region) * splits + split;
}

}  // namespace oscar
