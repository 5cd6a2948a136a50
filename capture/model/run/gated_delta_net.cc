// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/gated_delta_net.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "capture/model/run/decoder_layer.h"  // RmsNorm
#include "capture/model/run/elementwise.h"
#include "capture/model/run/product.h"

namespace oscar {
namespace {

// Number of tokens whose mutual corrections are solved as one triangular system.
constexpr int64_t kChunk = 64;

// Returns x / sqrt(sum(x²) + 1e-6) over the last dimension, in x's type, converted to float32.
at::Tensor UnitLength(const at::Tensor& x) {
  return x.mul(x.mul(x).sum(-1, /*keepdim=*/true).add_(1e-6).rsqrt_()).to(at::kFloat);
}

struct Projected {
  at::Tensor qkv;   // [n, conv_width]
  at::Tensor z;     // [n, num_v_heads, v_head_dim]
  at::Tensor b, a;  // [n, num_v_heads]
};

Projected Project(const GatedDeltaNetSpec& spec, const GatedDeltaNetWeights& weights,
                  const at::Tensor& x) {
  const int64_t n = x.size(0);
  if (!spec.fused) {
    return {ApplyLinear(weights.qkv, x),
            ApplyLinear(weights.z, x).view({n, spec.num_v_heads, spec.v_head_dim}),
            ApplyLinear(weights.b, x), ApplyLinear(weights.a, x)};
  }
  const int64_t k_dim = spec.k_head_dim, ratio = spec.num_v_heads / spec.num_k_heads;
  const int64_t values = ratio * spec.v_head_dim;  // for one key head
  const at::Tensor qkvz = ApplyLinear(weights.qkvz, x).view({n, spec.num_k_heads, -1});
  const at::Tensor ba = ApplyLinear(weights.ba, x).view({n, spec.num_k_heads, 2 * ratio});
  const auto part = [&](const at::Tensor& from, int64_t begin, int64_t count) {
    return from.narrow(2, begin, count).reshape({n, -1});
  };
  const at::Tensor z = part(qkvz, 2 * k_dim + values, values);
  return {
      at::cat({part(qkvz, 0, k_dim), part(qkvz, k_dim, k_dim), part(qkvz, 2 * k_dim, values)}, 1),
      z.view({n, spec.num_v_heads, spec.v_head_dim}), part(ba, 0, ratio), part(ba, ratio, ratio)};
}

// Inputs of the delta rule for some tokens.
struct RuleInputs {
  at::Tensor q, k;     // [n, num_v_heads, k_head_dim] float32, of length 1
  at::Tensor v;        // [n, num_v_heads, v_head_dim] float32
  at::Tensor g, beta;  // [n, num_v_heads] float32
};

// `mixed` [n, conv_width] is qkv after the convolution.
RuleInputs MakeRuleInputs(const GatedDeltaNetSpec& spec, const GatedDeltaNetWeights& weights,
                          const Projected& in, const at::Tensor& mixed) {
  const int64_t ratio = spec.num_v_heads / spec.num_k_heads, keys = spec.key_width();
  const auto heads = [&](int64_t first, int64_t width, int64_t count) {
    return mixed.narrow(1, first, width).reshape({mixed.size(0), count, -1});
  };
  const at::Tensor q = UnitLength(heads(0, keys, spec.num_k_heads)),
                   k = UnitLength(heads(keys, keys, spec.num_k_heads));
  const at::Tensor g = Softplus(in.a.to(at::kFloat).add(weights.dt_bias))
                           .mul_(weights.a_log.to(at::kFloat).exp().neg_());
  return {q.repeat_interleave(ratio, 1), k.repeat_interleave(ratio, 1),
          heads(2 * keys, spec.value_width(), spec.num_v_heads).to(at::kFloat), g,
          Sigmoid(in.b).to(at::kFloat)};
}

// Returns norm(x) * silu(gate), with transformers' order of casts.  // both [.., v_head_dim]
at::Tensor GatedNorm(const at::Tensor& x, const at::Tensor& weight, double eps,
                     const at::Tensor& gate) {
  return RmsNorm(x, weight, eps).mul(Silu(gate.to(at::kFloat))).to(x.scalar_type());
}

}  // namespace

GatedDeltaNetWeights LoadGatedDeltaNet(WeightLoader& loader, const GatedDeltaNetSpec& spec) {
  GatedDeltaNetWeights weights;
  LoadLinears(loader, {{&weights.qkvz, &spec.qkvz},
                       {&weights.ba, &spec.ba},
                       {&weights.qkv, &spec.qkv},
                       {&weights.z, &spec.z},
                       {&weights.b, &spec.b},
                       {&weights.a, &spec.a},
                       {&weights.out, &spec.out}});
  weights.conv = loader.Load(spec.conv);
  weights.a_log = loader.Load(spec.a_log);
  weights.dt_bias = loader.Load(spec.dt_bias);
  weights.out_norm = loader.Load(spec.out_norm.weight);
  return weights;
}

// Within a chunk, the corrections of tokens depend on each other:
// u_i = beta_i (v_i - Sᵀ k_i - sum_{j<i} decay(i, j) (k_i . k_j) u_j),
// a unit lower triangular system (arXiv 2412.06464, section 3.3).
at::Tensor GatedDeltaRule(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const at::Tensor& g, const at::Tensor& beta, at::Tensor& state) {
  const int64_t num_tokens = q.size(0), heads = q.size(1);
  const int64_t padding = (kChunk - num_tokens % kChunk) % kChunk;
  // [H, chunks, kChunk, ..]. Padding tokens in the last chunk have beta 0 and no effect.
  const auto in_chunks = [&](const at::Tensor& x) {
    const at::Tensor padded = at::constant_pad_nd(x.transpose(0, 1), {0, 0, 0, padding});
    return padded.reshape({heads, -1, kChunk, x.size(2)});
  };
  const at::Tensor queries = in_chunks(q.mul(1 / std::sqrt(static_cast<double>(q.size(2)))));
  const at::Tensor keys = in_chunks(k), values = in_chunks(v);
  const at::Tensor betas = in_chunks(beta.unsqueeze(-1));        // [H, chunks, kChunk, 1]
  const at::Tensor sums = in_chunks(g.unsqueeze(-1)).cumsum(2);  // log decays, in a chunk
  at::Tensor decay = sums.sub(sums.transpose(2, 3)).tril_();     // [H, chunks, kChunk, kChunk]
  ElementwiseInPlace(decay, [](at::Tensor& x) { x.exp_(); });
  decay.tril_();
  const at::Tensor keys_transposed = keys.transpose(2, 3);
  const at::Tensor k_beta = keys.mul(betas);
  const at::Tensor system = BatchProduct(k_beta, keys_transposed).mul_(decay);
  const int64_t v_dim = v.size(2);
  const at::Tensor solved = at::linalg_solve_triangular(
      system, at::cat({values.mul(betas), k_beta.mul(Exp(sums))}, -1), /*upper=*/false,
      /*left=*/true, /*unitriangular=*/true);
  const at::Tensor own = solved.narrow(-1, 0, v_dim);                 // result if S were 0
  const at::Tensor from_state = solved.narrow(-1, v_dim, q.size(2));  // contribution of S
  const at::Tensor scores = BatchProduct(queries, keys_transposed).mul_(decay);
  const at::Tensor decayed_queries = queries.mul(Exp(sums));
  const at::Tensor totals = sums.narrow(2, kChunk - 1, 1);  // [H, chunks, 1, 1]
  const at::Tensor keys_to_end = keys.mul(Exp(totals.sub(sums))).transpose(2, 3);
  const at::Tensor state_decay = Exp(totals);

  at::Tensor out = at::empty_like(values);
  for (int64_t chunk = 0; chunk < out.size(1); ++chunk) {
    const auto at_chunk = [&](const at::Tensor& x) { return x.select(1, chunk); };
    const at::Tensor u = at_chunk(own).sub(BatchProduct(at_chunk(from_state), state));
    out.select(1, chunk).copy_(
        BatchProduct(at_chunk(decayed_queries), state).add_(BatchProduct(at_chunk(scores), u)));
    state = state.mul(at_chunk(state_decay)).add_(BatchProduct(at_chunk(keys_to_end), u));
  }
  return out.view({heads, -1, v_dim}).narrow(1, 0, num_tokens).transpose(0, 1);
}

at::Tensor GatedDeltaNet(const GatedDeltaNetSpec& spec, const GatedDeltaNetWeights& weights,
                         double eps, int64_t token_chunk, const at::Tensor& x, DeltaNetState* end) {
  const int64_t num_tokens = x.size(0);
  const at::TensorOptions wide = x.options().dtype(at::kFloat);
  at::Tensor state = at::zeros({spec.num_v_heads, spec.k_head_dim, spec.v_head_dim}, wide);
  // Inputs of the convolution from earlier tokens; zeros before the first token.
  at::Tensor before = at::zeros({spec.conv_kernel - 1, spec.conv_width()}, x.options());
  at::Tensor result = at::empty_like(x);
  for (int64_t begin = 0; begin < num_tokens; begin += token_chunk) {
    const int64_t n = std::min(token_chunk, num_tokens - begin);
    const Projected in = Project(spec, weights, x.narrow(0, begin, n));
    const at::Tensor seen = at::cat({before, in.qkv}, 0);
    before = seen.narrow(0, n, spec.conv_kernel - 1);
    const at::Tensor mixed =
        Silu(at::conv1d(seen.t().unsqueeze(0), weights.conv, {}, at::IntArrayRef{1},
                        at::IntArrayRef{0}, at::IntArrayRef{1}, spec.conv_width()))
            .squeeze(0)
            .t();  // [n, conv_width]
    const RuleInputs rule = MakeRuleInputs(spec, weights, in, mixed);
    const at::Tensor out =
        GatedDeltaRule(rule.q, rule.k, rule.v, rule.g, rule.beta, state).to(x.scalar_type());
    const at::Tensor normed = GatedNorm(out, weights.out_norm, eps, in.z);
    result.narrow(0, begin, n).copy_(ApplyLinear(weights.out, normed.reshape({n, -1})));
  }
  if (end != nullptr) *end = {before.unsqueeze(0), state.unsqueeze(0)};
  return result;
}

at::Tensor GatedDeltaNetStep(const GatedDeltaNetSpec& spec, const GatedDeltaNetWeights& weights,
                             double eps, const at::Tensor& x, DeltaNetState& state) {
  const int64_t n = x.size(0);
  const Projected in = Project(spec, weights, x);
  const at::Tensor seen = at::cat({state.inputs, in.qkv.unsqueeze(1)}, 1);  // [n, kernel, width]
  state.inputs = seen.narrow(1, 1, spec.conv_kernel - 1);
  const at::Tensor mixed = Silu(seen.to(at::kFloat)
                                    .mul(weights.conv.to(at::kFloat).squeeze(1).t())
                                    .sum(1)
                                    .to(x.scalar_type()));
  const RuleInputs rule = MakeRuleInputs(spec, weights, in, mixed);
  // Applies the rule in gated_delta_net.h to Sᵀ: first the decay, then the correction.
  const at::Tensor keys = rule.k.unsqueeze(-1);  // [n, H, k_head_dim, 1]
  const at::Tensor decayed = state.rule.mul(Exp(rule.g).unsqueeze(-1).unsqueeze(-1));
  const at::Tensor known = decayed.mul(keys).sum(2);  // [n, H, v_head_dim]
  const at::Tensor correction = rule.v.sub(known).mul_(rule.beta.unsqueeze(-1));
  state.rule = decayed.add(keys.mul(correction.unsqueeze(2)));
  const at::Tensor out = state.rule.mul(rule.q.unsqueeze(-1))
                             .sum(2)
                             .mul_(1 / std::sqrt(static_cast<double>(spec.k_head_dim)))
                             .to(x.scalar_type());
  const at::Tensor normed = GatedNorm(out, weights.out_norm, eps, in.z);
  return ApplyLinear(weights.out, normed.reshape({n, -1}));
}

}  // namespace oscar
