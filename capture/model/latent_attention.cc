// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/latent_attention.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>

#include "linalg/check.h"

namespace oscar {
namespace {

at::Tensor LatentNorm(const at::Tensor& x, const at::Tensor& weight) {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor inverse_rms =
      wide.square().mean(-1, /*keepdim=*/true).add_(kLatentNormEps).rsqrt_();
  return wide.mul(inverse_rms).to(x.scalar_type()).mul_(weight);
}

// x [n, heads, rope_dim] turned into `out` of the same shape: first halves of all pairs, then
// second.
void Turn(const at::Tensor& x, RopeLayout layout, const at::Tensor& cos, const at::Tensor& sin,
          at::Tensor out) {
  const int64_t pairs = x.size(2) / 2;
  OSCAR_CHECK_EQ(cos.size(2), pairs);
  const bool neighbours = layout == RopeLayout::kInterleaved;
  const at::Tensor first = neighbours ? x.slice(2, 0, {}, 2) : x.narrow(2, 0, pairs);
  const at::Tensor second = neighbours ? x.slice(2, 1, {}, 2) : x.narrow(2, pairs, pairs);
  out.narrow(2, 0, pairs).copy_(first.mul(cos).sub_(second.mul(sin)));
  out.narrow(2, pairs, pairs).copy_(second.mul(cos).add_(first.mul(sin)));
}

// [num_q_heads, nope_dim + v_head_dim, rank]
at::Tensor ExpansionPerHead(const AttentionSpec& spec, const LatentWeights& weights) {
  return weights.kv_b.weight.view({spec.num_q_heads, -1, spec.latent->rank});
}

}  // namespace

LatentWeights LoadLatent(WeightLoader& loader, const LatentSpec& spec) {
  LatentWeights weights;
  weights.q = LoadLinear(loader, spec.q);
  weights.q_a = LoadLinear(loader, spec.q_a);
  weights.q_b = LoadLinear(loader, spec.q_b);
  if (spec.q_a_norm.exists()) weights.q_a_norm = loader.Load(spec.q_a_norm.weight);
  weights.kv_a = LoadLinear(loader, spec.kv_a);
  weights.kv_a_norm = loader.Load(spec.kv_a_norm.weight);
  weights.kv_b = LoadLinear(loader, spec.kv_b);
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
           : ApplyLinear(weights.q_b, LatentNorm(ApplyLinear(weights.q_a, x), weights.q_a_norm)))
          .view({n, spec.num_q_heads, nope + rope});
  q.narrow(2, 0, nope).copy_(queries.narrow(2, 0, nope));
  Turn(queries.narrow(2, nope, rope), spec.rope.layout, cos, sin, q.narrow(2, nope, rope));

  const at::Tensor compressed = ApplyLinear(weights.kv_a, x);
  latents.c_kv.copy_(LatentNorm(compressed.narrow(1, 0, latent.rank), weights.kv_a_norm));
  Turn(compressed.narrow(1, latent.rank, rope).unsqueeze(1), spec.rope.layout, cos, sin,
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
  return absorbed;
}

at::Tensor QueriesInLatentSpace(const AttentionSpec& spec, const LatentWeights& weights,
                                const at::Tensor& q) {
  const int64_t nope = spec.latent->nope_dim;
  const at::Tensor w_uk = ExpansionPerHead(spec, weights).narrow(1, 0, nope);
  const at::Tensor absorbed =
      at::matmul(q.narrow(2, 0, nope).transpose(0, 1), w_uk).transpose(0, 1);
  return at::cat({absorbed, q.narrow(2, nope, spec.latent->rope_dim)}, 2);
}

at::Tensor OutputsFromLatentSpace(const AttentionSpec& spec, const LatentWeights& weights,
                                  const at::Tensor& out) {
  const at::Tensor w_uv =
      ExpansionPerHead(spec, weights).narrow(1, spec.latent->nope_dim, spec.v_head_dim);
  return at::matmul(out.transpose(0, 1), w_uv.transpose(1, 2)).transpose(0, 1);
}

}  // namespace oscar
