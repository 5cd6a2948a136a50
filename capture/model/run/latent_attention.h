// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Multi-head latent attention (latent_spec.h) in two forms. In one, queries, keys and values of all
// heads are expanded from latents. The other one works in latent space, as a cache sees it. There,
// every head reads the same latent as key and value: with key = W_UK c and value = W_UV c of a
// latent c, q · key = (q W_UK) · c and sum p_j value_j = W_UV sum p_j c_j (DeepSeek-V2, arXiv
// 2405.04434, section 2.1.2).
// Trap: rope on the position part is interleaved, but its result has the even dimensions first,
// then the odd ones, unless keeps_pairs is set (transformers, apply_rotary_pos_emb_interleave).
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "capture/model/run/linear_weights.h"
#include "capture/model/run/weight_loader.h"
#include "capture/model/spec/model_spec.h"

namespace oscar {

struct LatentWeights {
  LinearWeights q, q_a, q_b, kv_a, kv_b;
  at::Tensor q_a_norm;   // [q_lora_rank]
  at::Tensor kv_a_norm;  // [rank]
};

// Requests tensors from `loader`; do not use them before loader.Finish().
LatentWeights LoadLatent(WeightLoader& loader, const LatentSpec& spec);

// The content of the cache for some tokens.
struct Latents {
  at::Tensor c_kv;  // [n, rank], after its norm
  at::Tensor k_pe;  // [n, rope_dim], after rope
};

// Projects normalized hidden states x [n, hidden_size]. `cos` and `sin` [n, 1, rope_dim / 2] belong
// to the tokens' positions. Writes queries to q [n, num_q_heads, nope_dim + rope_dim], expanded
// keys and values to k and v [n, num_q_heads, ..], and the content of the cache to `latents`. All
// outputs must be allocated.
void ProjectLatent(const AttentionSpec& spec, const LatentWeights& weights, const at::Tensor& x,
                   const at::Tensor& cos, const at::Tensor& sin,
                   std::optional<at::ScalarType> cache_dtype, at::Tensor& q, at::Tensor& k,
                   at::Tensor& v, Latents& latents);

// Returns attention in latent space: one KV head, whose key and value are c_kv. The position part
// is separate and not counted in head_dim, so the spec has no rotary embedding.
AttentionSpec InLatentSpace(const AttentionSpec& spec);
// Returns the model's layers with a cache, in latent space if their attention is latent.
std::vector<LayerSpec> LayersInLatentSpace(const ModelSpec& spec);

// Returns the weights that expand the latent, per head [W_UK | W_UV].
// -> [num_q_heads, nope_dim + v_head_dim, rank]
at::Tensor ExpansionOf(const AttentionSpec& spec, const LatentWeights& weights);
// Returns the part W_UV of these weights.  // [num_q_heads, v_head_dim, rank]
at::Tensor ValueExpansion(const LatentSpec& spec, const at::Tensor& kv_b);

// Contiguous queries of one sequence in latent space. Logits are scale * (q . c_kv + q_pe . k_pe).
struct LatentQueries {
  at::Tensor q;     // [n, num_q_heads, rank]: q_nope W_UK
  at::Tensor q_pe;  // [n, num_q_heads, rope_dim]
};
// `q` [n, num_q_heads, nope_dim + rope_dim] are queries of the expanded heads.
LatentQueries QueriesInLatentSpace(const LatentSpec& spec, const at::Tensor& kv_b,
                                   const at::Tensor& q);
// Concatenates queries or keys to rows [latent | position], whose products are logits.
// [n, heads, rank] and [n, heads, rope_dim] (or [n, rope_dim] for the key that all heads share) ->
// [n, heads, rank + rope_dim]
at::Tensor WithPosition(const at::Tensor& latent, const at::Tensor& position);
// Applies W_UV of each head.  // [n, num_q_heads, rank] -> [n, num_q_heads, v_head_dim]
at::Tensor OutputsFromLatentSpace(const LatentSpec& spec, const at::Tensor& kv_b,
                                  const at::Tensor& out);

}  // namespace oscar
