// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Simulates a rotated cache as a bf16 runtime computes it. The matrices, inputs and results of
// rotations are rounded to bf16, and sums are float32. Queries and the rows in windows are rotated
// too. Trap: a runtime rotates queries instead of rotating keys back, so keys return to the model's
// space by the exact inverse. It does rotate values back, so these return by the bf16 matrix.
#pragma once

#include <ATen/core/Tensor.h>

#include "export/simulate/rotated_quantizer.h"

namespace oscar {

// Rows [tokens, num_kv_heads, dim] as read from the cache, in the model's space: float64 if the
// stored rows are float64, else float32.
struct Bf16Rows {
  at::Tensor quantized;
  at::Tensor exact;  // while the token is in a window
};
Bf16Rows Bf16KeysThroughCache(const RotatedQuantizer& quantizer, const at::Tensor& keys);
Bf16Rows Bf16ValuesThroughCache(const RotatedQuantizer& quantizer, const at::Tensor& values);

// Returns queries [rows, num_q_heads, dim] after the bf16 rotation, transformed back to the model's
// space.
at::Tensor Bf16Queries(const RotatedQuantizer& keys, const at::Tensor& queries);

}  // namespace oscar
