// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Non-uniform codec levels for tests: ascending, symmetric, from -1 to 1.
#pragma once

#include <cmath>
#include <vector>

namespace oscar {

inline std::vector<float> SampleLevels(int bits) {
  const int count = 1 << bits;
  std::vector<float> levels;
  for (int i = 0; i < count; ++i) {
    const double u = 2.0 * i / (count - 1) - 1;
    levels.push_back(static_cast<float>(std::copysign(std::pow(std::abs(u), 1.4), u)));
  }
  return levels;
}

}  // namespace oscar
