// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts between values and float tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "export/formats/pt/pt_file.h"

namespace oscar {

inline FloatTensorPtr MakeTensor(std::vector<int64_t> shape, std::vector<float> values) {
  return std::make_shared<const FloatTensor>(FloatTensor{std::move(shape), std::move(values)});
}

// Returns the values in float64, or nothing if there is no tensor.
inline std::vector<double> Doubles(const FloatTensorPtr& tensor) {
  if (!tensor) return {};
  return {tensor->values.begin(), tensor->values.end()};
}

}  // namespace oscar
