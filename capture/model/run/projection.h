// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Projects tokens to the queries, keys and values that enter plain or latent attention; shared by
// LayerLoop and DecodeLoop. ProjectQkv normalizes its input and scales queries by position.
// ProjectLatent does neither, so this function does both.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "capture/model/run/decoder_layer.h"
#include "capture/model/run/latent_attention.h"

namespace oscar {

// Projects hidden [n, hidden_size] to q, k, v [n, heads, ..] and, for latent attention, `latents`.
// Does not write k and v if the layer reads another layer's.  // -> the gate as in ProjectQkv
inline at::Tensor ProjectTokens(const LayerSpec& layer, const LayerWeights& weights, double eps,
                                const at::Tensor& hidden, const RopeRows& rope,
                                std::optional<at::ScalarType> cache_dtype, at::Tensor q,
                                at::Tensor k, at::Tensor v, Latents latents) {
  if (!layer.attention.latent) return ProjectQkv(layer, weights, eps, hidden, rope, q, k, v);
  const at::Tensor x = Norm(layer.attention_norm, weights.attention_norm, eps, hidden);
  ProjectLatent(layer.attention, weights.latent, x, rope.cos, rope.sin, cache_dtype, q, k, v,
                latents);
  if (rope.q_scale.defined()) q.mul_(rope.q_scale.to(q.scalar_type()));
  return {};
}

}  // namespace oscar
