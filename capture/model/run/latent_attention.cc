// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/latent_attention.h"

#include <ATen/ops/cat.h>

#include "capture/model/run/decoder_layer.h"  // RmsNorm
#include "capture/model/run/product.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// Writes rotated x [n, heads, rope_dim] to `out` of the same shape. If pairs are interleaved and
// keeps_pairs is not set, moves the first dimensions of all pairs before the second ones. Otherwise
// dimensions keep their places.
void Turn(const at::Tensor& x, const AttentionSpec& spec, const at::Tensor& cos,
          const at::Tensor& sin, at::Tensor out) {
  const int64_t pairs = x.size(2) / 2;
  OSCAR_CHECK_EQ(cos.size(2), pairs);
  const bool neighbours = spec.rope.layout == RopeLayout::kInterleaved;
  const at::Tensor first = neighbours ? x.slice(2, 0, {}, 2) : x.narrow(2, 0, pairs);
  const at::Tensor second = neighbours ? x.slice(2, 1, {}, 2) : x.narrow(2, pairs, pairs);
  const bool stay = neighbours && spec.latent->keeps_pairs;
  at::Tensor to_first = stay ? out.slice(2, 0, {}, 2) : out.narrow(2, 0, pairs);
  at::Tensor to_second = stay ? out.slice(2, 1, {}, 2) : out.narrow(2, pairs, pairs);
  to_first.copy_(first.mul(cos).sub_(second.mul(sin)));
  to_second.copy_(second.mul(cos).add_(first.mul(sin)));
}

}  // namespace

LatentWeights LoadLatent(WeightLoader& loader, const LatentSpec& spec) {
  LatentWeights weights;
  LoadLinears(loader, {{&weights.q, &spec.q},
                       {&weights.q_a, &spec.q_a},
                       {&weights.q_b, &spec.q_b},
                       {&weights.kv_a, &spec.kv_a},
                       {&weights.kv_b, &spec.kv_b}});
  if (spec.q_a_norm.exists()) weights.q_a_norm = loader.Load(spec.q_a_norm.weight);
  weights.kv_a_norm = loader.Load(spec.kv_a_norm.weight);
  return weights;
}

void ProjectLatent(const AttentionSpec& spec, const LatentWeights& weights, const at::Tensor& x,
                   const at::Tensor& cos, const at::Tensor& sin,
                   std::optional<at::ScalarType> cache_dtype, at::Tensor& q, at::Tensor& k,
                   at::Tensor& v, Latents& latents) {
  const LatentSpec& latent = *spec.latent;
  const int64_t n = x.size(0), nope = latent.nope_dim, rope = latent.rope_dim;
  const at::Tensor queries =
      (weights.q.weight.defined()
           ? ApplyLinear(weights.q, x)
           : ApplyLinear(weights.q_b,
                         RmsNorm(ApplyLinear(weights.q_a, x), weights.q_a_norm, kLatentNormEps)))
          .view({n, spec.num_q_heads, nope + rope});
  q.narrow(2, 0, nope).copy_(queries.narrow(2, 0, nope));
  Turn(queries.narrow(2, nope, rope), spec, cos, sin, q.narrow(2, nope, rope));

  const at::Tensor compressed = ApplyLinear(weights.kv_a, x);
  latents.c_kv.copy_(
      RmsNorm(compressed.narrow(1, 0, latent.rank), weights.kv_a_norm, kLatentNormEps));
  Turn(compressed.narrow(1, latent.rank, rope).unsqueeze(1), spec, cos, sin,
       latents.k_pe.unsqueeze(1));

  if (cache_dtype && *cache_dtype != x.scalar_type()) {
    latents.c_kv.copy_(latents.c_kv.to(*cache_dtype));
    latents.k_pe.copy_(latents.k_pe.to(*cache_dtype));
  }
  const at::Tensor expanded =
      ApplyLinear(weights.kv_b, latents.c_kv).view({n, spec.num_q_heads, -1});
  k.narrow(2, 0, nope).copy_(expanded.narrow(2, 0, nope));
  k.narrow(2, nope, rope).copy_(latents.k_pe.unsqueeze(1));
  v.copy_(expanded.narrow(2, nope, spec.v_head_dim));
}

AttentionSpec InLatentSpace(const AttentionSpec& spec) {
  AttentionSpec absorbed = spec;
  absorbed.num_kv_heads = 1;
  absorbed.head_dim = spec.latent->rank;
  absorbed.v_head_dim = spec.latent->rank;
  absorbed.rope = {.kind = RopeKind::kNone};
  return absorbed;
}

std::vector<LayerSpec> LayersInLatentSpace(const ModelSpec& spec) {
  std::vector<LayerSpec> layers = spec.layers;
  for (LayerSpec& layer : layers) {
    if (layer.attention.latent) layer.attention = InLatentSpace(layer.attention);
  }
  return layers;
}

at::Tensor ExpansionOf(const AttentionSpec& spec, const LatentWeights& weights) {
  return weights.kv_b.weight.view({spec.num_q_heads, -1, spec.latent->rank});
}

at::Tensor ValueExpansion(const LatentSpec& spec, const at::Tensor& kv_b) {
  return kv_b.narrow(1, spec.nope_dim, kv_b.size(1) - spec.nope_dim);
}

LatentQueries QueriesInLatentSpace(const LatentSpec& spec, const at::Tensor& kv_b,
                                   const at::Tensor& q) {
  const at::Tensor w_uk = kv_b.narrow(1, 0, spec.nope_dim);
  const at::Tensor heads = q.narrow(2, 0, spec.nope_dim).transpose(0, 1);
  return {BatchProduct(heads, w_uk).transpose(0, 1).contiguous(),
          q.narrow(2, spec.nope_dim, spec.rope_dim).contiguous()};
}

at::Tensor WithPosition(const at::Tensor& latent, const at::Tensor& position) {
  return at::cat({latent, position.dim() == 3 ? position : position.unsqueeze(1)}, 2);
}

at::Tensor OutputsFromLatentSpace(const LatentSpec& spec, const at::Tensor& kv_b,
                                  const at::Tensor& out) {
  const at::Tensor w_uv = ValueExpansion(spec, kv_b);
  return BatchProduct(out.transpose(0, 1), w_uv.transpose(1, 2)).transpose(0, 1);
}

}  // namespace oscar
