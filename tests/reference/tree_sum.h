// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A sum whose order is the same on all devices: the second half of the values is added to the
// first, element by element, until one value is left. Trap: on tensors the same folds must be
// written out (export/simulate/row_tensors.h), because the order of a library's sum depends on the
// device.
#pragma once

#include <cstddef>
#include <span>

namespace oscar {

// Returns the sum of `values`, which must not be empty; overwrites them.
template <typename T>
T TreeSum(std::span<T> values) {
  for (size_t count = values.size(); count > 1;) {
    const size_t half = (count + 1) / 2;
    for (size_t i = 0; i + half < count; ++i) values[i] += values[i + half];
    count = half;
  }
  return values[0];
}

}  // namespace oscar
