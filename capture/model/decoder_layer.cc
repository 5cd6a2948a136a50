// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/decoder_layer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>

#include <cmath>
#include <vector>

#include "linalg/check.h"

namespace oscar {
namespace {

at::Tensor Apply(const LinearWeights& linear, const at::Tensor& x) {
  return at::linear(x, linear.weight, linear.bias);
}

void Activate(Activation activation, at::Tensor& x) {
  switch (activation) {
    case Activation::kSilu:
      at::silu_(x);
      return;
  }
  OSCAR_CHECK(false);
}

}  // namespace

RopeRows MakeRopeTable(const RopeSpec& rope, int64_t num_positions, const WeightTarget& target) {
  const std::vector<double> frequencies = InverseFrequencies(rope);
  const int64_t pairs = static_cast<int64_t>(frequencies.size());
  at::Tensor cos = at::empty({num_positions, pairs}, at::kFloat),
             sin = at::empty({num_positions, pairs}, at::kFloat);
  float* cos_data = cos.mutable_data_ptr<float>();
  float* sin_data = sin.mutable_data_ptr<float>();
  for (int64_t position = 0; position < num_positions; ++position) {
    for (const double frequency : frequencies) {
      const float angle = static_cast<float>(position) * static_cast<float>(frequency);
      *cos_data++ = std::cos(angle);
      *sin_data++ = std::sin(angle);
    }
  }
  return {cos.to(target.device, target.dtype).unsqueeze(1),
          sin.to(target.device, target.dtype).unsqueeze(1)};
}

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor inverse_rms = wide.square().mean(-1, /*keepdim=*/true).add_(eps).rsqrt_();
  return wide.mul(inverse_rms).to(x.scalar_type()).mul_(weight);
}

void RotateInPlace(at::Tensor& x, const RopeRows& rope) {
  const int64_t pairs = rope.cos.size(-1);
  at::Tensor first = x.narrow(2, 0, pairs), second = x.narrow(2, pairs, pairs);
  const at::Tensor turned_first = first.mul(rope.cos).sub_(second.mul(rope.sin));
  const at::Tensor turned_second = second.mul(rope.cos).add_(first.mul(rope.sin));
  first.copy_(turned_first);
  second.copy_(turned_second);
}

void ProjectQkv(const LayerSpec& layer, const LayerWeights& weights, double eps,
                const at::Tensor& hidden, const RopeRows& rope, at::Tensor& q, at::Tensor& k,
                at::Tensor& v) {
  const at::Tensor input = RmsNorm(hidden, weights.attention_norm, eps);
  const auto project = [&](const LinearWeights& linear, const at::Tensor& norm, at::Tensor& out) {
    const at::Tensor heads = Apply(linear, input).view(out.sizes());
    out.copy_(norm.defined() ? RmsNorm(heads, norm, eps) : heads);
  };
  project(weights.q, weights.q_norm, q);
  project(weights.k, weights.k_norm, k);
  project(weights.v, {}, v);
  OSCAR_CHECK_LE(layer.attention.rope.rotary_dim, layer.attention.head_dim);
  RotateInPlace(q, rope);
  RotateInPlace(k, rope);
}

at::Tensor AttentionOutput(const LayerWeights& weights, const at::Tensor& attn_out) {
  return Apply(weights.o, attn_out.view({attn_out.size(0), -1}));
}

at::Tensor MlpOutput(const LayerSpec& layer, const LayerWeights& weights, double eps,
                     const at::Tensor& hidden) {
  const at::Tensor input = RmsNorm(hidden, weights.mlp_norm, eps);
  at::Tensor gate = Apply(weights.gate, input);
  Activate(layer.mlp.activation, gate);
  return Apply(weights.down, gate.mul_(Apply(weights.up, input)));
}

void AddAttentionAndMlp(const LayerSpec& layer, const LayerWeights& weights, double eps,
                        const at::Tensor& attn_out, at::Tensor& hidden) {
  hidden.add_(AttentionOutput(weights, attn_out));
  hidden.add_(MlpOutput(layer, weights, eps, hidden));
}

}  // namespace oscar
