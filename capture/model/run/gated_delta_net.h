// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Linear attention of one sequence by the gated delta rule (delta_net_spec.h; Gated DeltaNet, arXiv
// 2412.06464, equation 10). Tokens are processed in chunks, and a state is passed from chunk to
// chunk. Trap: decays are exponentials of running sums. Within a chunk only differences of those
// sums are exponentiated, because the sums themselves would overflow.
#pragma once

#include <ATen/core/Tensor.h>

#include "capture/model/run/linear_weights.h"
#include "capture/model/run/weight_loader.h"
#include "capture/model/spec/delta_net_spec.h"

namespace oscar {

struct GatedDeltaNetWeights {
  LinearWeights qkvz, ba, qkv, z, b, a;
  at::Tensor conv;            // [conv_width, 1, conv_kernel]
  at::Tensor a_log, dt_bias;  // [num_v_heads]
  at::Tensor out_norm;        // [v_head_dim]
  LinearWeights out;
};

// Requests tensors from `loader`; do not use them before loader.Finish().
GatedDeltaNetWeights LoadGatedDeltaNet(WeightLoader& loader, const GatedDeltaNetSpec& spec);

// For one sequence:
// S_t = S_{t-1} (I - beta_t k_t k_tᵀ) exp(g_t) + beta_t v_t k_tᵀ; out_t = S_t q_t /
// sqrt(k_head_dim)
// q, k [T, H, k_head_dim] (normalized to length 1), v [T, H, v_head_dim], g, beta [T, H], all
// float32. `state` [H, k_head_dim, v_head_dim] float32 is Sᵀ: before the first token on entry,
// after the last one on return.
// -> [T, H, v_head_dim] float32
at::Tensor GatedDeltaRule(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const at::Tensor& g, const at::Tensor& beta, at::Tensor& state);

// The states at the end of some sequences. They contain everything that the next tokens need.
struct DeltaNetState {
  at::Tensor inputs;  // [sequences, conv_kernel - 1, conv_width]: inputs of the convolution,
                      // compute dtype
  at::Tensor rule;    // [sequences, num_v_heads, k_head_dim, v_head_dim] float32
};

// Runs linear attention on one sequence of normalized hidden states x [T, hidden_size], at most
// token_chunk tokens at a time. If `end` is not null, sets it to the state after the last token.
// -> [T, hidden_size]
at::Tensor GatedDeltaNet(const GatedDeltaNetSpec& spec, const GatedDeltaNetWeights& weights,
                         double eps, int64_t token_chunk, const at::Tensor& x,
                         DeltaNetState* end = nullptr);
// Runs one more token of each sequence, x [sequences, hidden_size], and updates `state`.
// -> [sequences, hidden_size]
at::Tensor GatedDeltaNetStep(const GatedDeltaNetSpec& spec, const GatedDeltaNetWeights& weights,
                             double eps, const at::Tensor& x, DeltaNetState& state);

}  // namespace oscar
