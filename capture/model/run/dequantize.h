// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts the stored parts of a weight to its values, on any device. Codes, zero points and scales
// are combined in float32, in the order of operations of the format's own library, and the result
// is rounded once, to the compute dtype. Rows are processed in steps, because a whole matrix in
// float32 would be several times the stored size.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "capture/checkpoint/weight_storage.h"

namespace oscar {

// Values per step, and the most bytes of temporaries per value. On a CPU, steps are so small that
// LibTorch uses one thread for them, because the other cores are busy with the current layer.
inline constexpr int64_t kDequantizeValuesCpu = int64_t{1} << 15;
inline constexpr int64_t kDequantizeValuesGpu = int64_t{1} << 21;
inline constexpr int64_t kDequantizeBytesPerValue = 48;

// Returns the stored element type as LibTorch's type; E8M0 as bytes. Throws InputError naming
// `what` for other types.
at::ScalarType PartScalarType(DType dtype, std::string_view what);

// `parts` are the stored parts of `storage`, in its order. Fills `result` [storage.shape].
void Dequantize(const WeightStorage& storage, std::span<const at::Tensor> parts,
                const at::Tensor& result);

}  // namespace oscar
