// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of one decoder layer on a few tokens at a time, in the order of casts of
// transformers 5 (norms in float32, everything else in the compute dtype). Trap: in bf16 the order
// of casts decides whole digits; keep it.
#pragma once

#include <ATen/core/Tensor.h>

#include "capture/model/layer_weights.h"
#include "capture/model/model_spec.h"

namespace oscar {

// Of some tokens.  // [n, 1, rotary_dim / 2], compute dtype
struct RopeRows {
  at::Tensor cos, sin;
};

// Cosines and sines of positions 0 .. num_positions-1: float32 on the host, then cast.  //
// [num_positions, rotary_dim / 2]
RopeRows MakeRopeTable(const RopeSpec& rope, int64_t num_positions, const WeightTarget& target);

// weight * cast(x / sqrt(mean(x²) + eps)), over the last dimension.
at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps);

// Turns the leading rotary_dim dimensions of every head in place.  // x [n, heads, head_dim]
void RotateInPlace(at::Tensor& x, const RopeRows& rope);

// Queries, keys and values as they enter attention, from hidden [n, hidden_size] into q, k, v [n,
// heads, head_dim].
void ProjectQkv(const LayerSpec& layer, const LayerWeights& weights, double eps,
                const at::Tensor& hidden, const RopeRows& rope, at::Tensor& q, at::Tensor& k,
                at::Tensor& v);

// o(attn_out) and mlp(norm(hidden)), which are added to hidden states one after the other.  //
// attn_out [n, num_q_heads, v_head_dim], hidden [n, hidden_size] -> [n, hidden_size]
at::Tensor AttentionOutput(const LayerWeights& weights, const at::Tensor& attn_out);
at::Tensor MlpOutput(const LayerSpec& layer, const LayerWeights& weights, double eps,
                     const at::Tensor& hidden);

// hidden += o(attn_out); hidden += mlp(norm(hidden)), in place.  // attn_out [n, num_q_heads,
// v_head_dim]
void AddAttentionAndMlp(const LayerSpec& layer, const LayerWeights& weights, double eps,
                        const at::Tensor& attn_out, at::Tensor& hidden);

}  // namespace oscar
