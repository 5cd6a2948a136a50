// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that Block-GTQ gives each pair of dimensions the bits of the published rule.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "tests/export/simulate/per_token_rows.h"

namespace oscar {
namespace {

// Returns the mean squared error of one head's keys in each dimension, [head_dim].
at::Tensor DimensionErrors(const at::Tensor& read, const at::Tensor& k, int64_t head) {
  return (read - k).select(1, head).square().mean(0);
}

// Assigns `total` bits by the published rule: 1 bit per pair, then bit by bit to the pair with the
// largest energy * 4^-bits, up to 8 bits.
std::vector<int> GreedyBits(const at::Tensor& energy, int total) {
  std::vector<int> bits(static_cast<size_t>(energy.size(0)), 1);
  for (int left = total - static_cast<int>(bits.size()); left > 0; --left) {
    size_t best = bits.size();
    double most = -1;
    for (size_t i = 0; i < bits.size(); ++i) {
      const double gain =
          energy[static_cast<int64_t>(i)].item<double>() * std::ldexp(1, -2 * bits[i]);
      if (bits[i] < 8 && gain > most) {
        most = gain;
        best = i;
      }
    }
    ++bits[best];
  }
  return bits;
}

// Given the bits of the published rule, the relative error of the pairs is that of Gaussian levels
// at the row's norm, within 30 %. Groups of fewer than 4 pairs are not Gaussian enough and are
// skipped.
TEST(BlockGtq, PairsHaveTheBitsOfTheGreedyRule) {
  RowContext rows({.head_dim = 128, .v_head_dim = 64, .sequences = 3, .tokens = 400});
  const CacheSides x = RowsOf(rows, at::kFloat);
  const at::Tensor q = at::cat(rows.rows().q).unflatten(1, {2, -1}), k = at::cat(rows.rows().k);
  const double gaussian[] = {1, 0.3634, 0.1175, 0.03454, 0.009497, 0.0025, 6.4e-4};
  for (const auto& [name, mean] : {std::pair{"block_gtq_k2v2", 2}, {"block_gtq_k3v2", 3}}) {
    const at::Tensor read = Stored(rows, name, x).k;
    for (int64_t head = 0; head < 2; ++head) {
      const at::Tensor energies =
          q.select(1, head).square().flatten(0, 1).mean(0) + k.select(1, head).square().mean(0);
      const at::Tensor pairs = energies.narrow(0, 0, 64) + energies.narrow(0, 64, 64);
      const std::vector<int> bits = GreedyBits(pairs, 64 * mean);
      const at::Tensor error = DimensionErrors(read, x.k, head);
      const at::Tensor own = x.k.select(1, head).square().mean(0);
      std::map<int, std::array<double, 3>> groups;
      for (int64_t i = 0; i < 64; ++i) {
        auto& [wrong, energy, count] = groups[bits[static_cast<size_t>(i)]];
        wrong += (error[i] + error[i + 64]).item<double>();
        energy += (own[i] + own[i + 64]).item<double>();
        ++count;
      }
      EXPECT_GT(groups.size(), 2U);
      for (const auto& [b, sums] : groups) {
        if (sums[2] < 4) continue;
        const double corrected = 2 - 2 * std::sqrt(1 - gaussian[b]);
        EXPECT_NEAR(sums[0] / sums[1], corrected, 0.3 * corrected) << name << ", " << b << " bits";
      }
    }
  }
}

TEST(BlockGtq, CostsItsBitsAndANormForEachGroup) {
  RowContext rows({.head_dim = 128, .v_head_dim = 128});
  const CacheCost cost = CacheMethodNamed("block_gtq_k3v2").cost(rows.context(), {}, 1 << 17);
  EXPECT_DOUBLE_EQ(cost.paper, 2.5);
  EXPECT_GT(cost.actual, 2.5 + 16.0 * 3 / 256);  // 3 norms or more: some for keys, one for values
  EXPECT_LT(cost.actual, 2.5 + 16.0 * 9 / 256);
}

}  // namespace
}  // namespace oscar
