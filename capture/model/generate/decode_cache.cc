// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/generate/decode_cache.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "capture/model/run/attention.h"

namespace oscar {
namespace {

// Like ExplicitAttention, but the first dimension of every shape is the sequence.
// -> [sequences, num_kv_heads, gqa_ratio, v dim]
at::Tensor ExplicitlyAttend(const AttentionSpec& spec, const at::Tensor& queries,
                            const at::Tensor& keys, const at::Tensor& values,
                            const at::Tensor& visible, const at::Tensor& sinks) {
  at::Tensor logits = at::matmul(queries.to(at::kFloat), keys.to(at::kFloat).transpose(2, 3))
                          .mul_(spec.scale);  // [sequences, num_kv_heads, gqa_ratio, keys]
  SoftCap(spec.softcap, logits);
  logits.masked_fill_(visible.logical_not(), -std::numeric_limits<float>::infinity());
  if (sinks.defined()) {
    const at::Tensor of_heads = sinks.to(at::kFloat).view({1, keys.size(1), -1, 1});
    logits = at::cat({logits, of_heads.expand({logits.size(0), -1, -1, -1})}, -1);
  }
  const at::Tensor weights = at::softmax(logits, -1).narrow(-1, 0, keys.size(2));
  return at::matmul(weights, values.to(at::kFloat)).to(queries.scalar_type());
}

}  // namespace

DecodeCache DecodeCache::Make(const AttentionSpec& spec, int64_t sequences, int64_t capacity,
                              const at::TensorOptions& options) {
  DecodeCache cache;
  if (spec.latent) {
    cache.k =
        at::zeros({sequences, capacity, 1, spec.latent->rank + spec.latent->rope_dim}, options);
    return cache;
  }
  // Starts with zeros, because masked values must be finite too.
  cache.k = at::zeros({sequences, capacity, spec.num_kv_heads, spec.head_dim}, options);
  cache.v = at::zeros({sequences, capacity, spec.num_kv_heads, spec.v_head_dim}, options);
  return cache;
}

int64_t DecodeCache::Bytes(const LayerSpec& layer, int64_t capacity, int64_t element) {
  if (const auto& net = layer.delta_net) {
    return (net->conv_kernel - 1) * net->conv_width() * element +
           net->num_v_heads * net->k_head_dim * net->v_head_dim * 4;
  }
  const AttentionSpec& a = layer.attention;
  if (!layer.has_cache()) return 0;
  const int64_t values =
      a.latent ? a.latent->rank + a.latent->rope_dim : a.num_kv_heads * (a.head_dim + a.v_head_dim);
  return capacity * values * element;
}

void DecodeCache::Store(const at::Tensor& slots, const at::Tensor& new_k, const at::Tensor& new_v) {
  k.view({-1, k.size(2), k.size(3)}).index_copy_(0, slots, new_k);
  if (new_v.defined()) v.view({-1, v.size(2), v.size(3)}).index_copy_(0, slots, new_v);
}

void DecodeCache::Keep(const at::Tensor& kept) {
  for (at::Tensor* x : {&k, &v, &delta_net.inputs, &delta_net.rule}) {
    if (x->defined()) *x = x->index_select(0, kept);
  }
}

at::Tensor AttendOneToken(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v, const at::Tensor& lengths, int64_t first_key,
                          const at::Tensor& sinks) {
  const int64_t sequences = q.size(0), heads = q.size(1), kv_heads = k.size(2);
  const at::Tensor positions =
      at::arange(first_key, first_key + k.size(1), lengths.options()).unsqueeze(0);
  const at::Tensor ends = lengths.unsqueeze(1);
  at::Tensor visible = positions.lt(ends);  // [sequences, keys]
  if (spec.window) visible.logical_and_(positions.ge(ends.sub(*spec.window)));
  visible = visible.view({sequences, 1, 1, -1});
  // The query heads of a KV head are rows of one product.
  const at::Tensor queries = q.view({sequences, kv_heads, heads / kv_heads, q.size(2)});
  const at::Tensor keys = k.permute({0, 2, 1, 3}), values = v.permute({0, 2, 1, 3});
  const at::Tensor out =
      NeedsExplicitAttention(spec)
          ? ExplicitlyAttend(spec, queries, keys, values, visible, sinks)
          : at::scaled_dot_product_attention(
                queries, keys, values, visible.expand({-1, kv_heads, heads / kv_heads, -1}), 0.0,
                /*is_causal=*/false, spec.scale);
  return out.reshape({sequences, heads, v.size(3)}).contiguous();
}

}  // namespace oscar
