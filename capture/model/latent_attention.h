// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Multi-head latent attention (latent_spec.h): queries, keys and values of all heads out of
// latents, and the same attention in latent space, as a cache sees it. With key = W_UK c and value
// = W_UV c of a latent c, q · key = (q W_UK) · c and sum p_j value_j = W_UV sum p_j c_j, so every
// head reads the one latent, which is key and value at once (DeepSeek-V2, arXiv 2405.04434,
// section 2.1.2). Trap: the part with position is rotated in pairs of neighbours, but its result
// has the even dimensions first, then the odd ones (transformers, apply_rotary_pos_emb_interleave).
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "capture/model/linear_weights.h"
#include "capture/model/model_spec.h"
#include "capture/model/weight_loader.h"

namespace oscar {

struct LatentWeights {
  LinearWeights q, q_a, q_b, kv_a, kv_b;
  at::Tensor q_a_norm;   // [q_lora_rank]
  at::Tensor kv_a_norm;  // [rank]
};

// Asks `loader` for what it needs; nothing may be used before loader.Finish().
LatentWeights LoadLatent(WeightLoader& loader, const LatentSpec& spec);

// What the cache holds of some tokens.
struct Latents {
  at::Tensor c_kv;  // [n, rank], after its norm
  at::Tensor k_pe;  // [n, rope_dim], after rope
};

// From normed hidden states x [n, hidden_size] and cosines and sines of the tokens' positions [n,
// 1, rope_dim / 2]: queries into q [n, num_q_heads, nope_dim + rope_dim], expanded keys and values
// into k, v [n, num_q_heads, ..], latents into `latents`, all of which are given.
void ProjectLatent(const AttentionSpec& spec, const LatentWeights& weights, const at::Tensor& x,
                   const at::Tensor& cos, const at::Tensor& sin,
                   std::optional<at::ScalarType> cache_dtype, at::Tensor& q, at::Tensor& k,
                   at::Tensor& v, Latents& latents);

// Attention as the cache sees it: one KV head, of which c_kv is key and value; what has position is
// beside it, not counted in head_dim, so that the spec has no rotary embedding.
AttentionSpec InLatentSpace(const AttentionSpec& spec);
// The model's layers with a cache as that cache sees them.
std::vector<LayerSpec> LayersInLatentSpace(const ModelSpec& spec);

// What expands the latent, per head [W_UK | W_UV]: [num_q_heads, nope_dim + v_head_dim, rank].
at::Tensor ExpansionOf(const AttentionSpec& spec, const LatentWeights& weights);
// Its part W_UV.  // [num_q_heads, v_head_dim, rank]
at::Tensor ValueExpansion(const LatentSpec& spec, const at::Tensor& kv_b);

// One sequence as its cache sees it, contiguous tensors all: logits are scale * (q . c_kv + q_pe .
// k_pe).
struct LatentQueries {
  at::Tensor q;     // [n, num_q_heads, rank]: q_nope W_UK
  at::Tensor q_pe;  // [n, num_q_heads, rope_dim]
};
// q [n, num_q_heads, nope_dim + rope_dim] of the expanded heads.
LatentQueries QueriesInLatentSpace(const LatentSpec& spec, const at::Tensor& kv_b,
                                   const at::Tensor& q);
// [latent | position], of queries or of keys: rows of one product.  // [n, heads, rank] and [n,
// heads, rope_dim], or [n, rope_dim] of the key that all heads share -> [n, heads, rank + rope_dim]
at::Tensor WithPosition(const at::Tensor& latent, const at::Tensor& position);
// W_UV of each head.  // [n, num_q_heads, rank] -> [n, num_q_heads, v_head_dim]
at::Tensor OutputsFromLatentSpace(const LatentSpec& spec, const at::Tensor& kv_b,
                                  const at::Tensor& out);

}  // namespace oscar
