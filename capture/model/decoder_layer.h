// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of one decoder layer but for attention itself, on a chunk of tokens. The order of
// operations and of roundings is that of transformers 5 (norms in float32, cosines cast to the
// compute dtype). In bf16 the order of casts decides whole digits; keep it.
#pragma once

#include <ATen/core/Tensor.h>

#include "capture/model/layer_weights.h"
#include "capture/model/model_spec.h"

namespace oscar {

// Of some tokens.  // [n, 1, NumPairs], compute dtype; undefined: nothing turns
struct RopeRows {
  at::Tensor cos, sin;
  RopeLayout layout = RopeLayout::kHalf;
  at::Tensor q_scale = {};  // [n, 1, 1] float32: factor on queries by position; or undefined
};

// Cosines and sines of positions 0 .. num_positions-1 in a sequence of `sequence_length` tokens:
// float32 on the host, then cast.  // [num_positions, 1, NumPairs]
RopeRows MakeRopeTable(const RopeSpec& rope, int64_t num_positions, const WeightTarget& target,
                       int64_t sequence_length = 0);

// weight * cast(x / sqrt(mean(x²) + eps)), over the last dimension.
at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps);
// As the kind says; x itself where there is no norm.
at::Tensor Norm(const NormSpec& norm, const NormWeights& weights, double eps, const at::Tensor& x);

// The two dimensions of each pair, as views of rows [..., head_dim].  // [..., NumPairs]
struct PairViews {
  at::Tensor first, second;
};
PairViews PairsOf(const at::Tensor& rows, const RopeSpec& rope);

// Turns the leading rotary dimensions of every head in place.  // x [n, heads, head_dim]
void RotateInPlace(at::Tensor& x, const RopeRows& rope);

// Queries, keys and values as they enter attention, from hidden [n, hidden_size] into q, k, v [n,
// heads, head_dim]; k and v are left alone where another layer's are read. The result is the gate
// on attn_out before its sigmoid, [n, num_q_heads, head_dim or 1], undefined where there is none.
at::Tensor ProjectQkv(const LayerSpec& layer, const LayerWeights& weights, double eps,
                      const at::Tensor& hidden, const RopeRows& rope, at::Tensor& q, at::Tensor& k,
                      at::Tensor& v);

// What is added to hidden states [n, hidden_size] one after the other: of attn_out [n, num_q_heads,
// v_head_dim] and its gate; of the MLP.  // -> [n, hidden_size]
at::Tensor AttentionOutput(const LayerSpec& layer, const LayerWeights& weights, double eps,
                           const at::Tensor& attn_out, const at::Tensor& gate);
at::Tensor MlpOutput(const LayerSpec& layer, const LayerWeights& weights, double eps,
                     const at::Tensor& hidden);

// As MlpSpec says.
at::Tensor Mlp(const MlpSpec& mlp, const LayerWeights& weights, double eps, const at::Tensor& x);

// What goes into the last projection where a gate is clamped.
at::Tensor ClampedProduct(const ClampedGate& clamped, const at::Tensor& gate, const at::Tensor& up);
// Of a MLP or an expert; not kXielu, which has weights.
void ActivateInPlace(Activation activation, at::Tensor& x);

// The layer behind its attention, in place; without its MLP and what follows where the layer has
// experts (experts_pass.h). `per_layer_input` [n, dim]: undefined where the layer has none.
void FinishLayer(const LayerSpec& layer, const LayerWeights& weights, double eps,
                 const at::Tensor& attn_out, const at::Tensor& gate,
                 const at::Tensor& per_layer_input, at::Tensor& hidden);
// Its part behind attention alone: MLP and what follows.
void AddMlp(const LayerSpec& layer, const LayerWeights& weights, double eps,
            const at::Tensor& per_layer_input, at::Tensor& hidden);
// Its last part, behind the MLP: per-layer input and scalar.
void AddPerLayerInput(const LayerSpec& layer, const LayerWeights& weights, double eps,
                      const at::Tensor& per_layer_input, at::Tensor& hidden);

}  // namespace oscar
