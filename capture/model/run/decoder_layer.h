// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Computes one decoder layer, except for attention itself, on a chunk of tokens. The order of
// operations and roundings is that of transformers 5 (norms in float32, cosines cast to the compute
// dtype). Keep this order: in bf16, another order of casts changes results noticeably.
#pragma once

#include <ATen/core/Tensor.h>

#include "capture/model/run/layer_weights.h"
#include "capture/model/spec/model_spec.h"

namespace oscar {

// Rope for some tokens.  // [n, 1, NumPairs], compute dtype; undefined: nothing rotates
struct RopeRows {
  at::Tensor cos, sin;
  RopeLayout layout = RopeLayout::kHalf;
  at::Tensor q_scale = {};  // [n, 1, 1] float32: position-dependent factor on queries, or undefined
};

// Returns cosines and sines for positions 0 .. num_positions-1 in a sequence of `sequence_length`
// tokens, computed in float32 on the host and then cast.  // [num_positions, 1, NumPairs]
RopeRows MakeRopeTable(const RopeSpec& rope, int64_t num_positions, const WeightTarget& target,
                       int64_t sequence_length = 0);

// weight * cast(x / sqrt(mean(x²) + eps)), over the last dimension.
at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps);
// Applies the norm of that kind; returns x itself if there is none.
at::Tensor Norm(const NormSpec& norm, const NormWeights& weights, double eps, const at::Tensor& x);

// The two dimensions of each pair, as views of rows [..., head_dim].  // [..., NumPairs]
struct PairViews {
  at::Tensor first, second;
};
PairViews PairsOf(const at::Tensor& rows, const RopeSpec& rope);

// Rotates the leading rotary dimensions of every head in place.  // x [n, heads, head_dim]
void RotateInPlace(at::Tensor& x, const RopeRows& rope);

// Projects hidden [n, hidden_size] to q, k, v [n, heads, head_dim] as they enter attention. Does
// not write k and v if the layer reads another layer's. Returns the gate on attn_out before its
// sigmoid or softplus, [n, num_q_heads, head_dim or 1]; undefined if there is none.
at::Tensor ProjectQkv(const LayerSpec& layer, const LayerWeights& weights, double eps,
                      const at::Tensor& hidden, const RopeRows& rope, at::Tensor& q, at::Tensor& k,
                      at::Tensor& v);

// Return what attention and what the MLP add to the hidden states. AttentionOutput needs attn_out
// [n, num_q_heads, v_head_dim] and its gate, MlpOutput the hidden states [n, hidden_size].
// -> [n, hidden_size]
at::Tensor AttentionOutput(const LayerSpec& layer, const LayerWeights& weights, double eps,
                           const at::Tensor& attn_out, const at::Tensor& gate);
at::Tensor MlpOutput(const LayerSpec& layer, const LayerWeights& weights, double eps,
                     const at::Tensor& hidden);

// Applies the MLP that MlpSpec describes.
at::Tensor Mlp(const MlpSpec& mlp, const LayerWeights& weights, double eps, const at::Tensor& x);

// Returns the input of the last projection if the gate is clamped.
at::Tensor ClampedProduct(const ClampedGate& clamped, const at::Tensor& gate, const at::Tensor& up);
// Applies the activation of an MLP or expert; not kXielu, which has weights.
void ActivateInPlace(Activation activation, at::Tensor& x);

// Runs the rest of the layer after attention, in place. If the layer has experts, the MLP and
// everything after it are left to ExpertsPass. `per_layer_input` [n, dim]: undefined if the layer
// has none.
void FinishLayer(const LayerSpec& layer, const LayerWeights& weights, double eps,
                 const at::Tensor& attn_out, const at::Tensor& gate,
                 const at::Tensor& per_layer_input, at::Tensor& hidden);
// Only runs the MLP and everything after it.
void AddMlp(const LayerSpec& layer, const LayerWeights& weights, double eps,
            const at::Tensor& per_layer_input, at::Tensor& hidden);
// Only runs the steps after the MLP: per-layer input and scalar.
void AddPerLayerInput(const LayerSpec& layer, const LayerWeights& weights, double eps,
                      const at::Tensor& per_layer_input, at::Tensor& hidden);

}  // namespace oscar
