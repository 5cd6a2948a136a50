// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/methods/kvarn.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "linalg/hadamard.h"
#include "tests/export/simulate/cache_loop.h"
#include "tests/reference/scalar_kvarn.h"

namespace oscar {
namespace {

constexpr int64_t kKvarnHeads = 2, kKvarnDim = 16;

std::vector<float> Rotated(const std::vector<float>& x) {
  static const Matrix h = BlockHadamard(kKvarnDim);
  std::vector<float> y;
  for (int64_t j = 0; j < kKvarnDim; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < kKvarnDim; ++i)
      sum += static_cast<double>(x[static_cast<size_t>(i)]) * h(i, j);
    y.push_back(static_cast<float>(sum));
  }
  return y;
}

void RotateTile(LoopSide& side, int64_t begin, int64_t count) {
  for (int64_t t = begin; t < begin + count; ++t) {
    for (size_t head = 0; head < side.heads(); ++head) {
      const float* row = &side.at(t, head, 0);
      const std::vector<float> y = Rotated({row, row + kKvarnDim});
      std::copy(y.begin(), y.end(), &side.at(t, head, 0));
    }
  }
}

// Quantizes tokens [begin, begin + tile) of every head. A tile's rows are channels for keys and
// tokens for values.
void QuantizeTile(LoopSide& side, int64_t begin, int64_t tile, bool keys, int bits,
                  int iterations) {
  RotateTile(side, begin, tile);
  for (size_t head = 0; head < side.heads(); ++head) {
    const auto at = [&](int64_t row, int64_t column) -> float& {
      const int64_t token = begin + (keys ? column : row), channel = keys ? row : column;
      return side.at(token, head, static_cast<size_t>(channel));
    };
    const TileShape shape = keys ? TileShape{kKvarnDim, tile} : TileShape{tile, kKvarnDim};
    std::vector<float> values;
    for (int64_t i = 0; i < shape.rows; ++i) {
      for (int64_t j = 0; j < shape.columns; ++j) values.push_back(at(i, j));
    }
    DecodeKvarnTile<float>(EncodeKvarnTile<float>(values, shape, bits, iterations), values);
    for (int64_t i = 0; i < shape.rows; ++i) {
      for (int64_t j = 0; j < shape.columns; ++j)
        at(i, j) = values[static_cast<size_t>(i * shape.columns + j)];
    }
  }
  RotateTile(side, begin, tile);
}

// Quantizes a tile when its last token arrives, before that token's attention.
CacheLoop Loop(const KvarnOptions& o) {
  const auto end = std::make_shared<int64_t>(kKvarnSink);
  const auto fill = [=](LoopSide& k, LoopSide& v) {
    for (; k.tokens() - *end >= o.tile; *end += o.tile) {
      QuantizeTile(k, *end, o.tile, true, o.k_bits, o.iterations);
      QuantizeTile(v, *end, o.tile, false, o.v_bits, o.iterations);
    }
  };
  return {.k = LoopSide(kKvarnHeads, kKvarnDim),
          .v = LoopSide(kKvarnHeads, kKvarnDim),
          .after_prefill = fill,
          .before_attention = fill,
          .after_step = [](LoopSide&, LoopSide&) {}};
}

CacheSides KvarnRows(int64_t tokens) {
  return {WholeRows(tokens, kKvarnHeads, kKvarnDim, 1),
          WholeRows(tokens, kKvarnHeads, kKvarnDim, 2)};
}

TEST(Kvarn, IsItsLoopAfterAnySplitOfASequence) {
  const CacheSides rows = KvarnRows(400);
  for (const KvarnOptions& options :
       {KvarnOptions{}, KvarnOptions{.k_bits = 2, .tile = 64, .iterations = 8}}) {
    for (const int64_t prefill : {1, 128, 191, 192, 255, 256, 300})
      ExpectSameReads(KvarnCache(options), rows, prefill, Loop(options), 1e-6);
  }
}

TEST(Kvarn, KeepsEverythingWithinTheFirstTileOrWithoutAQuantizer) {
  ExpectEverythingExact(KvarnCache({}), KvarnRows(255));
  ExpectEverythingExact(KvarnCache({.tile = 64}), KvarnRows(191));
  ExpectEverythingExact(KvarnCache({.k_bits = 0, .v_bits = 0}), KvarnRows(500));
}

}  // namespace
}  // namespace oscar
