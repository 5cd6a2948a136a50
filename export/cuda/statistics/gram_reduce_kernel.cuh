// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Adds the partial sums of the splits to the caller's matrices: splits in order, then into both
// triangles. Fragments hold columns in the order in which their kernel staged the features.
#pragma once

#include "export/cuda/statistics/gram_cover.cuh"

namespace oscar {

// Feature of column g of the 8-feature block c of a panel, or of the columns of a square.
//   kNatural  8 c + g
//   kDealt    in a superblock of 64 features, feature 8 g + r is column g of block r
enum class FeatureOrder { kNatural, kDealt };
__device__ inline int FeatureOf(FeatureOrder order, int c, int g) {
  return order == FeatureOrder::kDealt ? c / 8 * 64 + g * 8 + c % 8 : 8 * c + g;
}

inline constexpr int kReduceLanes = 32;   // neighbouring pairs of a CTA
inline constexpr int kReduceStrands = 8;  // of the splits; each is added up, then they are

// CTAs of kReduceLanes x kReduceStrands threads. Grid: kPairs * kThreads / kReduceLanes, regions,
// KV heads. sums [num_kv_heads, dim, dim].
template <typename Cover>
__global__ void __launch_bounds__(kReduceLanes* kReduceStrands)
    GramReduceKernel(const double2* partials, int dim, int splits, FeatureOrder order,
                     double* sums) {
  __shared__ double2 strands[kReduceStrands][kReduceLanes];
  const int index = blockIdx.x * kReduceLanes + threadIdx.x;
  const GramRegion region = GramRegionOf(dim, blockIdx.y);
  const int pair = index / Cover::kThreads, thread = index % Cover::kThreads;
  if (pair / 4 >= (region.square ? Cover::kSquareTiles : Cover::kPanelTiles)) return;  // whole CTA

  constexpr int kSize = Cover::kPairs * Cover::kThreads;
  const double2* partial =
      partials + GramPartial(blockIdx.z, blockIdx.y, 0, gridDim.y, splits) * kSize + index;
  double2 sum = {0, 0};
#pragma unroll 8
  for (int split = threadIdx.y; split < splits; split += kReduceStrands) {
    const double2 value = partial[static_cast<int64_t>(split) * kSize];
    sum.x += value.x;
    sum.y += value.y;
  }
  strands[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0) return;
  for (int strand = 1; strand < kReduceStrands; ++strand) {
    sum.x += strands[strand][threadIdx.x].x;
    sum.y += strands[strand][threadIdx.x].y;
  }

  const int g = thread % 32 / 4, t = thread % 4;
  const typename Cover::Tile tile = Cover::TileOf(region.square, thread / 32, pair / 4);
  const bool diagonal = tile.row == tile.column;
  const int row = region.rows + FeatureOf(order, 2 * tile.row + pair % 2, g);
  const int block = 2 * tile.column + pair / 2 % 2;
  double* matrix = sums + static_cast<int64_t>(blockIdx.z) * dim * dim;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int column =
        region.square ? region.columns + FeatureOf(order, block - 2 * Cover::kRowBlocks, 2 * t + i)
                      : region.rows + FeatureOf(order, block, 2 * t + i);
    // A tile on the diagonal holds both of a pair; one is used.
    if (row >= dim || column >= dim || (diagonal && column < row)) continue;
    const double value = i == 0 ? sum.x : sum.y;
    matrix[row * dim + column] += value;
    if (column != row) matrix[column * dim + row] += value;
  }
}

}  // namespace oscar
