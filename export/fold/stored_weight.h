// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads weights of a checkpoint as float64 and writes them back in their own type. A number beyond
// the type's range is an error, so that it never becomes an infinity in a model.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "capture/checkpoint/safetensors.h"
#include "export/fold/weight_edits.h"

namespace oscar {

// Reads a weight as float64. Throws InputError naming the tensor if its type is not BF16, F16 or
// F32, or if it has more than two dimensions.
WeightMatrix ReadWeight(const TensorView& view, std::string_view name);

// Converts a weight to `dtype`, rounding to nearest, ties to even. Throws NumericalError naming the
// tensor if a value does not fit the type.
std::vector<std::byte> StoredWeight(const WeightMatrix& weight, DType dtype, std::string_view name);

}  // namespace oscar
