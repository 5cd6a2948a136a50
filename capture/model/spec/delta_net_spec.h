// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Linear attention by the gated delta rule as data (Gated DeltaNet, arXiv 2412.06464; Qwen3-Next,
// Qwen3.5). Such a layer has a state of fixed size and no KV cache, so it runs but gets no
// rotation. Qwen3-Next stores two fused input projections, ordered by key head; Qwen3.5 stores four
// separate ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/model/spec/linear_spec.h"

namespace oscar {

struct GatedDeltaNetSpec {
  int64_t num_k_heads = 0, num_v_heads = 0;  // num_k_heads divides num_v_heads
  int64_t k_head_dim = 0, v_head_dim = 0;
  int64_t conv_kernel = 0;  // tokens in the causal convolution over q, k, v
  // If fused (Qwen3-Next), rows are ordered by key head. For each key head, rows of qkvz are [q | k
  // | v of its value heads | z of its value heads], and rows of ba are [b | a] of its value heads.
  // Otherwise qkv is [all q | all k | all v], and z, b, a are separate tensors.
  bool fused = false;
  LinearSpec qkvz, ba;
  LinearSpec qkv, z, b, a;
  std::string conv;            // tensor name; [2 key_width + value_width, 1, conv_kernel]
  std::string a_log, dt_bias;  // tensor names; [num_v_heads]
  NormSpec out_norm;           // over v_head_dim, gated by silu(z)
  LinearSpec out;

  int64_t key_width() const { return num_k_heads * k_head_dim; }
  int64_t value_width() const { return num_v_heads * v_head_dim; }
  int64_t conv_width() const { return 2 * key_width() + value_width(); }
};

void AppendTensors(const GatedDeltaNetSpec& net, std::vector<TensorNeed>& needs);

}  // namespace oscar
