// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/decoder_layer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <vector>

#include "capture/model/run/elementwise.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// Equals XIELUActivation of transformers 5.
at::Tensor Xielu(const XieluSpec& spec, const XieluWeights& weights, const at::Tensor& x) {
  const auto number = [&](const at::Tensor& stored, double usual) {
    return stored.defined() ? stored : at::scalar_tensor(usual, x.options());
  };
  const at::Tensor beta = number(weights.beta, spec.usual_beta),
                   eps = number(weights.eps, spec.usual_eps);
  const at::Tensor rising = x.mul(at::softplus(weights.alpha_p)).mul(x);
  const at::Tensor falling =
      Elementwise(at::minimum(x, eps), [](const at::Tensor& v) { return v.expm1(); })
          .sub(x)
          .mul(beta.add(at::softplus(weights.alpha_n)));
  return at::where(x.gt(0), rising, falling).add(x.mul(beta));
}

// Variance without Bessel's correction, in float32 (like Cohere2LayerNorm and nn.LayerNorm).
at::Tensor LayerNorm(const at::Tensor& x, const NormWeights& weights, double eps, bool one_plus) {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor centered = wide.sub(wide.mean(-1, /*keepdim=*/true));
  const at::Tensor inverse = centered.square().mean(-1, /*keepdim=*/true).add_(eps).rsqrt_();
  at::Tensor result = centered.mul(inverse);
  if (weights.weight.defined()) result.mul_(one_plus ? weights.weight.add(1) : weights.weight);
  if (weights.bias.defined()) result.add_(weights.bias);
  return result.to(x.scalar_type());
}

PairViews Pairs(const at::Tensor& x, int64_t pairs, RopeLayout layout) {
  if (layout == RopeLayout::kHalf) return {x.narrow(-1, 0, pairs), x.narrow(-1, pairs, pairs)};
  return {x.slice(-1, 0, 2 * pairs, 2), x.slice(-1, 1, 2 * pairs, 2)};
}

// Normalizes each head, or all heads together if the norm covers all of them.
// x [n, heads, head_dim]
at::Tensor HeadNorm(const NormSpec& norm, const NormWeights& weights, double eps,
                    const at::Tensor& x) {
  if (!weights.of_heads.empty()) return Norm(norm, {at::stack(weights.of_heads), {}, {}}, eps, x);
  if (norm.size == x.size(2)) return Norm(norm, weights, eps, x);
  OSCAR_CHECK_EQ(norm.size, x.size(1) * x.size(2));
  return Norm(norm, weights, eps, x.reshape({x.size(0), norm.size})).view(x.sizes());
}

}  // namespace

at::Tensor ClampedProduct(const ClampedGate& clamped, const at::Tensor& gate,
                          const at::Tensor& up) {
  const at::Tensor lower = gate.clamp_max(clamped.limit);
  const at::Tensor swish = lower.mul(Sigmoid(lower.mul(clamped.alpha)));
  return up.clamp(-clamped.limit, clamped.limit).add_(1).mul_(swish);
}

void ActivateInPlace(Activation activation, at::Tensor& x) {
  switch (activation) {
    case Activation::kSilu:
      ElementwiseInPlace(x, [](at::Tensor& v) { at::silu_(v); });
      return;
    case Activation::kGeluTanh:
      x = Elementwise(x, [](const at::Tensor& v) { return at::gelu(v, "tanh"); });
      return;
    case Activation::kGelu:
      x = Elementwise(x, [](const at::Tensor& v) { return at::gelu(v); });
      return;
    case Activation::kRelu:
      x = at::relu(x);
      return;
    case Activation::kReluSquared:
      x = at::relu(x).square();
      return;
    case Activation::kXielu:
      break;
  }
  OSCAR_CHECK(false);
}

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
      const float angle =
          static_cast<float>(rope.first_position + position) * static_cast<float>(frequency);
      *cos_data++ = std::cos(angle) * factor;
      *sin_data++ = std::sin(angle) * factor;
    }
  }
  return {cos.to(target.device, target.dtype).unsqueeze(1),
          sin.to(target.device, target.dtype).unsqueeze(1), rope.layout};
}

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  // On a GPU, uses one kernel, which rounds in the same way as the lines below.
  if (x.is_cuda()) return at::rms_norm(x, x.sizes().slice(x.dim() - 1), {}, eps).mul_(weight);
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
    case NormKind::kLayerNormOnePlus:
      return LayerNorm(x, weights, eps, norm.kind == NormKind::kLayerNormOnePlus);
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
  const auto cut = [&](const at::Tensor& x) {
    return spec.clamp == 0 ? x : x.clamp(-spec.clamp, spec.clamp);
  };
  // Applies norm and rope to queries or keys, in the family's order, and stores them in `to`.
  const auto place = [&](const at::Tensor& heads, const NormSpec& norm, const NormWeights& of_norm,
                         at::Tensor& to) {
    const bool first = spec.qk_norm && !spec.norm_after_rope;
    to.copy_(cut(first ? HeadNorm(norm, of_norm, eps, heads) : heads));
    if (rope.cos.defined()) RotateInPlace(to, rope);
    if (spec.qk_norm && spec.norm_after_rope) to.copy_(HeadNorm(norm, of_norm, eps, to.clone()));
  };
  at::Tensor queries = ApplyLinear(weights.q, input), gate;
  if (spec.gated) {
    const at::Tensor both = queries.view({q.size(0), q.size(1), 2 * q.size(2)});
    queries = both.narrow(2, 0, q.size(2));
    gate = both.narrow(2, q.size(2), q.size(2));
  } else {
    queries = queries.view(q.sizes());
  }
  if (weights.attention_gate.weight.defined()) {
    const at::Tensor gates = ApplyLinear(weights.attention_gate, input);
    gate = gates.view({q.size(0), q.size(1), gates.size(1) / q.size(1)});
  }
  OSCAR_CHECK(rope.cos.defined() || spec.rope.kind == RopeKind::kNone);
  place(queries, spec.q_norm, weights.q_norm, q);
  if (rope.q_scale.defined()) q.mul_(rope.q_scale.to(q.scalar_type()));
  if (spec.shared_kv) return gate;
  const at::Tensor keys = ApplyLinear(weights.k, input).view(k.sizes());
  place(keys, spec.k_norm, weights.k_norm, k);
  const at::Tensor values = spec.v_from_k ? keys : ApplyLinear(weights.v, input).view(v.sizes());
  v.copy_(cut(Norm(spec.v_norm, weights.v_norm, eps, values)));
  if (spec.v_scale != 1) v.mul_(spec.v_scale);
  return gate;
}

at::Tensor AttentionOutput(const LayerSpec& layer, const LayerWeights& weights, double eps,
                           const at::Tensor& attn_out, const at::Tensor& gate) {
  at::Tensor gated = attn_out;
  if (gate.defined()) {
    gated = attn_out.mul(layer.attention.gate_softplus
                             ? Softplus(gate.to(at::kFloat)).to(gate.scalar_type())
                             : Sigmoid(gate));
  }
  const at::Tensor heads = Norm(layer.attention.out_norm, weights.attention_out_norm, eps,
                                gated.view({attn_out.size(0), -1}));
  at::Tensor out = Norm(layer.post_attention_norm, weights.post_attention_norm, eps,
                        ApplyLinear(weights.o, heads));
  return layer.residual_multiplier == 1 ? out : out.mul(layer.residual_multiplier);
}

at::Tensor Mlp(const MlpSpec& mlp, const LayerWeights& weights, double eps, const at::Tensor& x) {
  if (mlp.clamped_gate) {
    return ApplyLinear(weights.down, ClampedProduct(*mlp.clamped_gate, ApplyLinear(weights.gate, x),
                                                    ApplyLinear(weights.up, x)));
  }
  const bool gated = mlp.gate.exists();
  at::Tensor inner = ApplyLinear(gated ? weights.gate : weights.up, x);
  if (mlp.activation == Activation::kXielu) {
    inner = Xielu(mlp.xielu, weights.xielu, inner);
  } else {
    ActivateInPlace(mlp.activation, inner);
  }
  if (gated) inner.mul_(ApplyLinear(weights.up, x));
  return ApplyLinear(weights.down, Norm(mlp.inner_norm, weights.mlp_inner_norm, eps, inner));
}

at::Tensor MlpOutput(const LayerSpec& layer, const LayerWeights& weights, double eps,
                     const at::Tensor& hidden) {
  const at::Tensor input = layer.parallel && !layer.mlp_norm.exists()
                               ? Norm(layer.attention_norm, weights.attention_norm, eps, hidden)
                               : Norm(layer.mlp_norm, weights.mlp_norm, eps, hidden);
  at::Tensor out =
      Norm(layer.post_mlp_norm, weights.post_mlp_norm, eps, Mlp(layer.mlp, weights, eps, input));
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
