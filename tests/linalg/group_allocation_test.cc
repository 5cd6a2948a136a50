// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares AllocateGroups with an exhaustive search over all groupings within the budget.
#include "linalg/group_allocation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace oscar {
namespace {

const std::vector<GroupOption> kOptions = {{1, 16}, {1, 40}, {2, 48}, {4, 64}};

double LeastOfAll(const std::vector<double>& energies,
                  const std::vector<std::vector<double>>& errors, size_t begin, int64_t budget) {
  double best = 0;
  for (size_t i = begin; i < energies.size(); ++i) best += energies[i];
  for (size_t option = 0; option < kOptions.size(); ++option) {
    const size_t end = begin + static_cast<size_t>(kOptions[option].size);
    if (end > energies.size() || kOptions[option].bits > budget) continue;
    best = std::min(best, errors[option][begin] +
                              LeastOfAll(energies, errors, end, budget - kOptions[option].bits));
  }
  return best;
}

TEST(GroupAllocation, NoOtherIsBetter) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<double> energies;
    for (int i = 0; i < 7; ++i) energies.push_back(std::exp(-i) * uniform(random));
    std::vector<std::vector<double>> errors(kOptions.size());
    for (std::vector<double>& of_option : errors)
      for (int i = 0; i < 7; ++i) of_option.push_back(std::exp(-i) * 0.4 * uniform(random));
    for (const int64_t budget : {0, 15, 16, 64, 120, 400}) {
      const auto error = [&](int64_t begin, size_t i) {
        return errors[i][static_cast<size_t>(begin)];
      };
      double sum = 0;
      int64_t bits = 0;
      size_t begin = 0;
      for (const size_t option : AllocateGroups(kOptions, energies, error, budget)) {
        sum += errors[option][begin];
        bits += kOptions[option].bits;
        begin += static_cast<size_t>(kOptions[option].size);
      }
      for (size_t i = begin; i < energies.size(); ++i) sum += energies[i];
      EXPECT_LE(bits, budget);
      EXPECT_NEAR(sum, LeastOfAll(energies, errors, 0, budget), 1e-12);
    }
  }
}

}  // namespace
}  // namespace oscar
