// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A rotated cache as a bf16 runtime computes it: matrices, inputs and results of rotations in bf16
// (sums in float32), rotated window rows, rotated queries. Trap: queries are rotated, so keys
// return to the model's space by the exact inverse; values return by the bf16 matrix.
#pragma once

#include <ATen/core/Tensor.h>

#include "export/simulate/rotated_quantizer.h"

namespace oscar {

// Rows [tokens, num_kv_heads, dim] read from the cache, in the model's space. float64 for float64
// rows, else float32.
struct Bf16Rows {
  at::Tensor quantized;
  at::Tensor exact;  // while the token is in a window
};
Bf16Rows Bf16KeysThroughCache(const RotatedQuantizer& quantizer, const at::Tensor& keys);
Bf16Rows Bf16ValuesThroughCache(const RotatedQuantizer& quantizer, const at::Tensor& values);

// Returns queries [rows, num_q_heads, dim] for those keys, after bf16 rotation, in model space.
at::Tensor Bf16Queries(const RotatedQuantizer& keys, const at::Tensor& queries);

}  // namespace oscar
