// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What the statistics kernels refuse, and how their work is cut; needs no GPU.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "export/cuda/statistics/column_sums.h"
#include "export/cuda/statistics/diagonal_weights.h"
#include "export/cuda/statistics/gram.h"
#include "export/cuda/statistics/gram_cover.cuh"
#include "linalg/error.h"

namespace oscar {
namespace {

AttentionRows Rows() { return ContiguousRows(nullptr, RowType::kBFloat16, 30000, 32, 8, 128); }

std::string MessageOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

std::string RefusalOf(AttentionRows rows) {
  return MessageOf([&] { GramWorkspaceBytes(rows); });
}

TEST(GramArguments, UnsupportedRowsAreNamed) {
  AttentionRows rows = Rows();
  EXPECT_EQ(RefusalOf(rows), "no error");
  for (const int dim : {0, 24, 130, 520}) {
    rows.dim = dim;
    EXPECT_NE(RefusalOf(rows).find("multiples of 8 from 32 to 512"), std::string::npos) << dim;
  }
  rows = Rows();
  for (const auto& [heads, kv_heads] : {std::pair{32, 0}, {32, 5}, {4, 8}, {2048, 8}}) {
    rows.num_heads = heads;
    rows.num_kv_heads = kv_heads;
    EXPECT_NE(RefusalOf(rows).find("a multiple of the KV heads"), std::string::npos) << heads;
  }
  rows = Rows();
  rows.num_tokens = kMaxRowTokens + 1;
  EXPECT_NE(RefusalOf(rows).find("16777217 tokens"), std::string::npos);
  rows = Rows();
  rows.head_stride = 132;
  EXPECT_NE(RefusalOf(rows).find("132 from head to head"), std::string::npos);
  rows = Rows();
  rows.data = reinterpret_cast<const void*>(uintptr_t{8});
  EXPECT_NE(RefusalOf(rows).find("multiples of 16 bytes"), std::string::npos);
}

TEST(GramArguments, UnsupportedCombinationsAreNamed) {
  const double weight = 1;
  EXPECT_EQ(
      MessageOf([&] {
        AccumulateGram(Rows(), {GramPrecision::kBFloat16Split, &weight}, nullptr, nullptr, nullptr);
      }),
      "weighted second moments are computed in float64 only");
  EXPECT_NE(MessageOf([&] {
              ComputeDiagonalWeights(Rows(), nullptr, nullptr, nullptr);
            }).find("32 heads over 8 KV heads"),
            std::string::npos);
}

// How often each 16 x 16 tile of a matrix of `dim` features is computed, its mirror image included.
template <typename Cover>
std::vector<int> TimesComputed(int dim) {
  const int blocks = GramHalfPanels(dim) * 4;
  std::vector<int> times(static_cast<size_t>(blocks * blocks));
  for (int index = 0; index < GramRegions(dim); ++index) {
    const GramRegion region = GramRegionOf(dim, index);
    for (int warp = 0; warp < Cover::kWarps; ++warp) {
      const int tiles = region.square ? Cover::kSquareTiles : Cover::kPanelTiles;
      for (int i = 0; i < tiles; ++i) {
        const typename Cover::Tile tile = Cover::TileOf(region.square, warp, i);
        const int row = region.rows / 16 + tile.row;
        const int column = region.square ? region.columns / 16 + tile.column - Cover::kRowBlocks
                                         : region.rows / 16 + tile.column;
        if (row >= blocks || column >= blocks) continue;  // past the last feature
        ++times[static_cast<size_t>(row * blocks + column)];
        if (row != column) ++times[static_cast<size_t>(column * blocks + row)];
      }
    }
  }
  return times;
}

TEST(GramCover, EveryPairOfFeatureBlocksIsComputedOnce) {
  for (const int times : TimesComputed<GramCover<4, false>>(64)) ASSERT_EQ(times, 1);
  for (int dim = 72; dim <= kMaxRowDim; dim += 8) {
    for (const int times : TimesComputed<GramCover<8, true>>(dim)) ASSERT_EQ(times, 1) << dim;
  }
}

// One matrix of 128 features takes 9 * 128 * 4 float64 pairs per split: a wave of an H200 is 33
// splits of 8 heads, whatever the tokens.
TEST(GramArguments, WorkspaceIsBoundedByTheGpuNotByTheTokens) {
  AttentionRows rows = Rows();
  const size_t partial = 9 * 4 * 128 * 16;
  EXPECT_EQ(GramWorkspaceBytes(rows), 8 * 33 * partial);
  rows.num_tokens = kMaxRowTokens;
  EXPECT_EQ(GramWorkspaceBytes(rows), 8 * 33 * partial);
  rows.num_tokens = 1;
  EXPECT_EQ(GramWorkspaceBytes(rows), 8 * partial);
  rows.num_tokens = 0;
  EXPECT_EQ(GramWorkspaceBytes(rows), 0u);
  EXPECT_EQ(ColumnSumsWorkspaceBytes(rows), 0u);
}

}  // namespace
}  // namespace oscar
