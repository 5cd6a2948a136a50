// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/methods/oscar_kv.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "linalg/hadamard.h"
#include "tests/export/simulate/cache_loop.h"
#include "tests/reference/scalar_affine_families.h"
#include "tests/reference/token_norm.h"

namespace oscar {
namespace {

constexpr int64_t kOscarKvHeads = 2, kOscarKvDim = 64;

std::vector<float> RoundTrip(const std::vector<float>& group) {
  std::vector<uint8_t> codes(group.size());
  std::vector<float> numbers(2), y(group.size());
  const auto size = static_cast<int64_t>(group.size());
  EncodeAffineFamily<float>(group, OscarKvRule(2), size, codes, numbers);
  DecodeAffineFamily<float>(codes, numbers, OscarKvRule(2), size, y);
  return y;
}

void Rotate(LoopSide& side, int64_t begin) {
  static const Matrix h = BlockHadamard(kOscarKvDim);
  for (int64_t t = begin; t < begin + kOscarKvResidual; ++t) {
    for (size_t head = 0; head < side.heads(); ++head) {
      Eigen::Map<Eigen::VectorXf> row(&side.at(t, head, 0), kOscarKvDim);
      row = (h * row.cast<double>()).cast<float>().eval();
    }
  }
}

// Divides the tokens of a rotated block by their norms, quantizes each channel over 32 tokens, and
// multiplies by the norms again.
void QuantizeRotatedKeys(LoopSide& k, int64_t begin) {
  std::vector<float> norms;
  for (int64_t t = begin; t < begin + kOscarKvResidual; ++t) {
    const std::span<float> row(&k.at(t, 0, 0), k.heads() * k.dim());
    norms.push_back(TokenNorm<float>(row));
    for (float& x : row) x /= norms.back();
  }
  for (int64_t t = begin; t < begin + kOscarKvResidual; t += kOscarKvGroup) {
    for (size_t head = 0; head < k.heads(); ++head) {
      for (size_t c = 0; c < k.dim(); ++c)
        k.SetChannel(t, head, c, RoundTrip(k.Channel(t, kOscarKvGroup, head, c)));
    }
  }
  for (int64_t t = begin; t < begin + kOscarKvResidual; ++t) {
    for (float& x : std::span<float>(&k.at(t, 0, 0), k.heads() * k.dim()))
      x *= norms[static_cast<size_t>(t - begin)];
  }
}

void QuantizeBlock(LoopSide& k, LoopSide& v, int64_t begin) {
  Rotate(k, begin);
  QuantizeRotatedKeys(k, begin);
  Rotate(k, begin);
  Rotate(v, begin);
  for (int64_t t = begin; t < begin + kOscarKvResidual; ++t) {
    for (size_t head = 0; head < v.heads(); ++head) {
      for (size_t c = 0; c < v.dim(); c += kOscarKvGroup) {
        float* group = &v.at(t, head, c);
        const std::vector<float> y = RoundTrip({group, group + kOscarKvGroup});
        std::copy(y.begin(), y.end(), group);
      }
    }
  }
  Rotate(v, begin);
}

CacheLoop Loop() {
  const auto end = std::make_shared<int64_t>(0);
  const auto fill = [=](LoopSide& k, LoopSide& v) {
    for (; k.tokens() - *end >= kOscarKvResidual; *end += kOscarKvResidual)
      QuantizeBlock(k, v, *end);
  };
  return {.k = LoopSide(kOscarKvHeads, kOscarKvDim),
          .v = LoopSide(kOscarKvHeads, kOscarKvDim),
          .after_prefill = fill,
          .before_attention = {},
          .after_step = fill};
}

CacheSides OscarKvRows(int64_t tokens) {
  CacheSides rows = {WholeRows(tokens, kOscarKvHeads, kOscarKvDim, 1),
                     WholeRows(tokens, kOscarKvHeads, kOscarKvDim, 2)};
  rows.k[3].fill_(0);  // a token with norm 0
  rows.v[4].fill_(0);
  return rows;
}

TEST(OscarKv, IsItsLoopAfterAnySplitOfASequence) {
  const CacheSides rows = OscarKvRows(300);
  for (const int64_t prefill : {1, 127, 128, 129, 255, 256, 280})
    ExpectSameReads(OscarKvCache({}), rows, prefill, Loop(), 1e-6);
}

TEST(OscarKv, RotatedKeysEqualTheScalarOnesBitForBit) {
  at::manual_seed(1);
  at::Tensor blocks = at::randn({1, kOscarKvResidual, kOscarKvHeads, kOscarKvDim});
  blocks[0][2].fill_(0);
  blocks[0][3].mul_(1e4);
  blocks[0][4].mul_(1e-30);
  blocks[0].narrow(0, 32, 32).select(-1, 7).fill_(0);  // lo = hi = 0 become -1 and 1
  blocks[0].narrow(0, 64, 32).copy_(blocks[0].narrow(0, 64, 32).mul(2).round());
  LoopSide k(kOscarKvHeads, kOscarKvDim);
  const float* data = blocks.const_data_ptr<float>();
  k.read.assign(data, data + blocks.numel());
  QuantizeRotatedKeys(k, 0);
  const at::Tensor y = OscarKvKeysRoundTrip(blocks, OscarKvRule(2)).contiguous();
  EXPECT_EQ(std::memcmp(k.read.data(), y.const_data_ptr<float>(), k.read.size() * sizeof(float)),
            0);
}

TEST(OscarKv, KeepsEverythingWithinABlockOrWithoutAQuantizer) {
  ExpectEverythingExact(OscarKvCache({}), OscarKvRows(128));
  ExpectEverythingExact(OscarKvCache({.bits = 0}), OscarKvRows(400));
}

}  // namespace
}  // namespace oscar
