// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts the sides of a cache (CacheSide) to tensors and transforms rows with them, in the
// arithmetic of a bf16 runtime. Weights are folded in bf16, rows and queries are rotated by bf16
// GEMMs, and exact tokens are stored rotated too. Keys and queries stay in the transformed space,
// where logits need no inverse; values are rotated back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "calib/cache_side.h"
#include "capture/model/spec/rope_spec.h"

namespace oscar {

// Splits `values` into matrices: float32 [number of matrices, rows, columns].
at::Tensor MatricesOf(const std::vector<double>& values, int64_t rows, int64_t columns,
                      at::Device device = at::kCPU);
// The side's rotations as [num_rotations, dim, dim].
at::Tensor RotationTensor(const CacheSide& side, at::Device device = at::kCPU);

// Returns the rows [tokens, heads, d] of the same text shifted by `offset` positions.
at::Tensor AtOffset(const at::Tensor& rows, const RopeSpec& rope, int64_t offset);

// Several sides on a device, for rows from several sequences.
struct SidesOnDevice {
  at::Tensor rotation, query_rotation;  // [sides, 1, num_kv_heads or 1, dim, dim] float32
  at::Tensor pair_scale, mean;  // [sides, 1, num_kv_heads, 1, dim]; undefined if no side has one
  at::Tensor feedback;  // [sides, 1, num_kv_heads, dim, dim] if all sides have it, or undefined
};
SidesOnDevice ToDevice(std::span<const CacheSide* const> sides, at::Device device);

// Transform [sequences, num_kv_heads, tokens, dim] by every side, to [sides, sequences, ...]:
// float32 tensors with bf16 values. For queries, the query heads of a KV head follow each other
// along the token dimension.
at::Tensor TurnedKeys(const SidesOnDevice& sides, const at::Tensor& keys);
at::Tensor TurnedValues(const SidesOnDevice& sides, const at::Tensor& values);
at::Tensor TurnedQueries(const SidesOnDevice& sides, const at::Tensor& queries);
// Undoes TurnedValues. Multiplies by the transposed query matrix in bf16, which is the inverse if
// queries have their own matrix. Values have scales and means only if they are latents, which are
// also keys.
at::Tensor ValuesTurnedBack(const SidesOnDevice& sides, const at::Tensor& rotated);

// The same functions for one side and one sequence: from [tokens, num_kv_heads, dim] to
// [num_kv_heads, tokens, dim], and back. Queries keep their shape, [rows, num_q_heads, dim].
SidesOnDevice OneSide(const CacheSide& side, at::Device device);
at::Tensor FeedbackOf(const SidesOnDevice& side);  // [num_kv_heads, dim, dim], or undefined
at::Tensor KeysOfOne(const SidesOnDevice& side, const at::Tensor& keys);
at::Tensor ValuesOfOne(const SidesOnDevice& side, const at::Tensor& values);
at::Tensor QueriesOfOne(const SidesOnDevice& side, const at::Tensor& queries, int64_t num_kv_heads);
at::Tensor ValuesBackOfOne(const SidesOnDevice& side, const at::Tensor& rotated);

}  // namespace oscar
