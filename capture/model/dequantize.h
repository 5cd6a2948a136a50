// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Stored parts of a weight to its values, on whatever device they are: code, zero point and scale
// in float32, in the order of operations the format's own library has, and one rounding to the
// compute dtype. A whole matrix in float32 would be several times what is stored, so rows go
// in steps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "capture/checkpoint/weight_storage.h"

namespace oscar {

// Values of one step (on the CPU so few that LibTorch does not spread them over threads: the other
// cores belong to the layer that computes meanwhile), and bytes of temporaries for each at most.
inline constexpr int64_t kDequantizeValuesCpu = int64_t{1} << 15;
inline constexpr int64_t kDequantizeValuesGpu = int64_t{1} << 21;
inline constexpr int64_t kDequantizeBytesPerValue = 48;

// The stored element type as LibTorch names it; E8M0 as bytes. InputError naming `what` for others.
at::ScalarType PartScalarType(DType dtype, std::string_view what);

// `parts` are those of `storage`, in its order, as stored; `result` [storage.shape] is filled.
void Dequantize(const WeightStorage& storage, std::span<const at::Tensor> parts,
                const at::Tensor& result);

}  // namespace oscar
