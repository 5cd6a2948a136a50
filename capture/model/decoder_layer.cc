// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/decoder_layer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>

#include <cmath>
#include <vector>

#include "linalg/check.h"

namespace oscar {
namespace {

void ActivateInPlace(Activation activation, at::Tensor& x) {
  switch (activation) {
    case Activation::kSilu:
      at::silu_(x);
      return;
    case Activation::kGeluTanh:
      x = at::gelu(x, "tanh");
      return;
    case Activation::kGelu:
      x = at::gelu(x);
      return;
  }
  OSCAR_CHECK(false);
}

// Variance without Bessel's correction, in float32 (Cohere2LayerNorm; nn.LayerNorm likewise).
at::Tensor LayerNorm(const at::Tensor& x, const NormWeights& weights, double eps) {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor centered = wide.sub(wide.mean(-1, /*keepdim=*/true));
  const at::Tensor inverse = centered.square().mean(-1, /*keepdim=*/true).add_(eps).rsqrt_();
  at::Tensor result = centered.mul(inverse).mul_(weights.weight);
  if (weights.bias.defined()) result.add_(weights.bias);
  return result.to(x.scalar_type());
}

PairViews Pairs(const at::Tensor& x, int64_t pairs, RopeLayout layout) {
  if (layout == RopeLayout::kHalf) return {x.narrow(-1, 0, pairs), x.narrow(-1, pairs, pairs)};
  return {x.slice(-1, 0, 2 * pairs, 2), x.slice(-1, 1, 2 * pairs, 2)};
}

// Over each head, or over all of them where the norm is that wide.  // x [n, heads, head_dim]
at::Tensor HeadNorm(const NormSpec& norm, const NormWeights& weights, double eps,
                    const at::Tensor& x) {
  if (norm.size == x.size(2)) return Norm(norm, weights, eps, x);
  OSCAR_CHECK_EQ(norm.size, x.size(1) * x.size(2));
  return Norm(norm, weights, eps, x.reshape({x.size(0), norm.size})).view(x.sizes());
}

}  // namespace

RopeRows MakeRopeTable(const RopeSpec& rope, int64_t num_positions, const WeightTarget& target,
                       int64_t sequence_length) {
  const std::vector<double> frequencies = InverseFrequencies(rope, sequence_length);
  const int64_t pairs = static_cast<int64_t>(frequencies.size());
  const float factor = static_cast<float>(rope.attention_factor);
  at::Tensor cos = at::empty({num_positions, pairs}, at::kFloat),
             sin = at::empty({num_positions, pairs}, at::kFloat);
  float* cos_data = cos.mutable_data_ptr<float>();
  float* sin_data = sin.mutable_data_ptr<float>();
  for (int64_t position = 0; position < num_positions; ++position) {
    for (const double frequency : frequencies) {
      const float angle = static_cast<float>(position) * static_cast<float>(frequency);
      *cos_data++ = std::cos(angle) * factor;
      *sin_data++ = std::sin(angle) * factor;
    }
  }
  return {cos.to(target.device, target.dtype).unsqueeze(1),
          sin.to(target.device, target.dtype).unsqueeze(1), rope.layout};
}

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor inverse_rms = wide.square().mean(-1, /*keepdim=*/true).add_(eps).rsqrt_();
  return wide.mul(inverse_rms).to(x.scalar_type()).mul_(weight);
}

at::Tensor Norm(const NormSpec& norm, const NormWeights& weights, double eps, const at::Tensor& x) {
  if (!norm.exists()) return x;
  switch (norm.kind) {
    case NormKind::kNone:
      return x;
    case NormKind::kPlain:
      return RmsNorm(x, weights.weight, eps);
    case NormKind::kLayerNorm:
      return LayerNorm(x, weights, eps);
    case NormKind::kOnePlus:
    case NormKind::kUnscaled: {
      const at::Tensor wide = x.to(at::kFloat);
      at::Tensor result = wide.mul(wide.square().mean(-1, /*keepdim=*/true).add_(eps).rsqrt_());
      if (norm.kind == NormKind::kOnePlus) result.mul_(weights.weight.to(at::kFloat).add(1));
      return result.to(x.scalar_type());
    }
  }
  OSCAR_CHECK(false);
  return {};
}

PairViews PairsOf(const at::Tensor& rows, const RopeSpec& rope) {
  return Pairs(rows, NumPairs(rope), rope.layout);
}

void RotateInPlace(at::Tensor& x, const RopeRows& rope) {
  const PairViews pairs = Pairs(x, rope.cos.size(-1), rope.layout);
  const at::Tensor &first = pairs.first, &second = pairs.second;
  const at::Tensor turned_first = first.mul(rope.cos).sub_(second.mul(rope.sin));
  const at::Tensor turned_second = second.mul(rope.cos).add_(first.mul(rope.sin));
  first.copy_(turned_first);
  second.copy_(turned_second);
}

at::Tensor ProjectQkv(const LayerSpec& layer, const LayerWeights& weights, double eps,
                      const at::Tensor& hidden, const RopeRows& rope, at::Tensor& q, at::Tensor& k,
                      at::Tensor& v) {
  const AttentionSpec& spec = layer.attention;
  const at::Tensor input = Norm(layer.attention_norm, weights.attention_norm, eps, hidden);
  const auto normed = [&](const at::Tensor& heads, const NormSpec& norm,
                          const NormWeights& of_norm) {
    return spec.qk_norm ? HeadNorm(norm, of_norm, eps, heads) : heads;
  };
  at::Tensor queries = ApplyLinear(weights.q, input), gate;
  if (spec.gated) {
    const at::Tensor both = queries.view({q.size(0), q.size(1), 2 * q.size(2)});
    queries = both.narrow(2, 0, q.size(2));
    gate = both.narrow(2, q.size(2), q.size(2));
  } else {
    queries = queries.view(q.sizes());
  }
  q.copy_(normed(queries, spec.q_norm, weights.q_norm));
  OSCAR_CHECK(rope.cos.defined() || spec.rope.kind == RopeKind::kNone);
  if (rope.cos.defined()) RotateInPlace(q, rope);
  if (rope.q_scale.defined()) q.mul_(rope.q_scale.to(q.scalar_type()));
  if (spec.shared_kv) return gate;
  const at::Tensor keys = ApplyLinear(weights.k, input).view(k.sizes());
  k.copy_(normed(keys, spec.k_norm, weights.k_norm));
  if (rope.cos.defined()) RotateInPlace(k, rope);
  const at::Tensor values = spec.v_from_k ? keys : ApplyLinear(weights.v, input).view(v.sizes());
  v.copy_(Norm(spec.v_norm, weights.v_norm, eps, values));
  return gate;
}

at::Tensor AttentionOutput(const LayerSpec& layer, const LayerWeights& weights, double eps,
                           const at::Tensor& attn_out, const at::Tensor& gate) {
  const at::Tensor gated = gate.defined() ? attn_out.mul(gate.sigmoid()) : attn_out;
  at::Tensor out = Norm(layer.post_attention_norm, weights.post_attention_norm, eps,
                        ApplyLinear(weights.o, gated.view({attn_out.size(0), -1})));
  return layer.residual_multiplier == 1 ? out : out.mul(layer.residual_multiplier);
}

at::Tensor Mlp(const MlpSpec& mlp, const LayerWeights& weights, const at::Tensor& x) {
  if (!mlp.gate.exists()) {
    at::Tensor up = ApplyLinear(weights.up, x);
    ActivateInPlace(mlp.activation, up);
    return ApplyLinear(weights.down, up);
  }
  at::Tensor gate = ApplyLinear(weights.gate, x);
  ActivateInPlace(mlp.activation, gate);
  return ApplyLinear(weights.down, gate.mul_(ApplyLinear(weights.up, x)));
}

at::Tensor MlpOutput(const LayerSpec& layer, const LayerWeights& weights, double eps,
                     const at::Tensor& hidden) {
  const at::Tensor input = layer.parallel
                               ? Norm(layer.attention_norm, weights.attention_norm, eps, hidden)
                               : Norm(layer.mlp_norm, weights.mlp_norm, eps, hidden);
  at::Tensor out =
      Norm(layer.post_mlp_norm, weights.post_mlp_norm, eps, Mlp(layer.mlp, weights, input));
  return layer.residual_multiplier == 1 ? out : out.mul(layer.residual_multiplier);
}

void AddPerLayerInput(const LayerSpec& layer, const LayerWeights& weights, double eps,
                      const at::Tensor& per_layer_input, at::Tensor& hidden) {
  if (const auto& spec = layer.per_layer_input) {
    OSCAR_CHECK(per_layer_input.defined());
    at::Tensor gate = ApplyLinear(weights.per_layer_gate, hidden);
    ActivateInPlace(spec->activation, gate);
    hidden.add_(Norm(spec->post_norm, weights.per_layer_norm, eps,
                     ApplyLinear(weights.per_layer_projection, gate.mul_(per_layer_input))));
  }
  if (weights.scalar.defined()) hidden.mul_(weights.scalar);
}

void AddMlp(const LayerSpec& layer, const LayerWeights& weights, double eps,
            const at::Tensor& per_layer_input, at::Tensor& hidden) {
  hidden.add_(MlpOutput(layer, weights, eps, hidden));
  AddPerLayerInput(layer, weights, eps, per_layer_input, hidden);
}

void FinishLayer(const LayerSpec& layer, const LayerWeights& weights, double eps,
                 const at::Tensor& attn_out, const at::Tensor& gate,
                 const at::Tensor& per_layer_input, at::Tensor& hidden) {
  const at::Tensor attended = AttentionOutput(layer, weights, eps, attn_out, gate);
  if (layer.parallel) {
    const at::Tensor mlp = MlpOutput(layer, weights, eps, hidden);
    hidden.add_(attended).add_(mlp);
    AddPerLayerInput(layer, weights, eps, per_layer_input, hidden);
    return;
  }
  hidden.add_(attended);
  if (!layer.experts) AddMlp(layer, weights, eps, per_layer_input, hidden);
}

}  // namespace oscar
