// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// RotateKV (arXiv 2501.16383). Keys before rope are rotated by a Hadamard matrix over the
// dimensions of four KV heads, and their channels are sorted by the sums of rotated calibration
// keys. Values are rotated by one matrix per head. Both are quantized per token in groups of 128
// channels by family A3 (linalg/affine_families.h). A group may contain channels of several heads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "export/simulate/cache_method.h"

namespace oscar {

struct RotateKvOptions {
  int bits = 2;                    // 0: transformed and back, not quantized
  float clip_ratio = 0.8F;         // multiplies both ends of a group's range
  int divisor = 0;                 // divides the range; 0: 2^bits - 1; published: bits^2 - 1
  int64_t quant_group_size = 128;  // channels; fewer if 128 does not divide their number
  // Number of first tokens that stay exact. RotateKV's code keeps the 20 tokens with the largest
  // hidden states exact. A cache cannot see hidden states, and most of those tokens are first
  // tokens.
  int64_t sink = 1;
};

struct RotateKvLayer {
  at::Tensor k_rotation;   // [heads_rotated * head_dim, same], symmetric, float64
  at::Tensor v_rotation;   // [v_head_dim, v_head_dim], symmetric, float64
  at::Tensor permutation;  // [num_kv_heads * head_dim] int64: rotated channel per place
};

// Returns how many consecutive KV heads one Hadamard matrix mixes: the largest of 4, 2 and 1 that
// divides their number.
int64_t HeadsRotated(int64_t num_kv_heads);

// Fits a layer. The permutation sorts rotated key channels by their sum over all `rows.k`,
// ascending.
RotateKvLayer FitRotateKv(const AttentionSpec& spec, const CalibrationRows& rows);

LayerCache RotateKvCache(const AttentionSpec& spec, const RotateKvLayer& layer,
                         const RotateKvOptions& options);

}  // namespace oscar
