// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A weight out of a checkpoint and back in its own type. A number beyond a type's range is an
// error here and never an infinity in a model.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "capture/checkpoint/safetensors.h"
#include "export/fold/weight_edits.h"

namespace oscar {

// Throws InputError naming the tensor for a type other than BF16, F16 and F32, or more than two
// dimensions.
WeightMatrix ReadWeight(const TensorView& view, std::string_view name);

// Rounded to nearest, ties to even. Throws NumericalError naming the tensor for what does not fit
// the type.
std::vector<std::byte> StoredWeight(const WeightMatrix& weight, DType dtype, std::string_view name);

}  // namespace oscar
