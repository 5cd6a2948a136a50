// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lists the tensors of layers with linear attention (delta_net_spec.h) and latent attention
// (latent_spec.h).
#include "capture/model/spec/delta_net_spec.h"
#include "capture/model/spec/latent_spec.h"

namespace oscar {
namespace {

void AppendPart(const LinearSpec& linear, std::vector<TensorNeed>& needs) {
  if (!linear.exists()) return;
  needs.push_back({linear.weight, {linear.out_features, linear.in_features}});
  if (!linear.bias.empty()) needs.push_back({linear.bias, {linear.out_features}});
}

void AppendPart(const NormSpec& norm, std::vector<TensorNeed>& needs) {
  if (norm.exists()) needs.push_back({norm.weight, {norm.size}});
}

}  // namespace

void AppendTensors(const GatedDeltaNetSpec& net, std::vector<TensorNeed>& needs) {
  for (const LinearSpec* linear : {&net.qkvz, &net.ba, &net.qkv, &net.z, &net.b, &net.a})
    AppendPart(*linear, needs);
  needs.push_back({net.conv, {net.conv_width(), 1, net.conv_kernel}});
  needs.push_back({net.a_log, {net.num_v_heads}});
  needs.push_back({net.dt_bias, {net.num_v_heads}});
  AppendPart(net.out_norm, needs);
  AppendPart(net.out, needs);
}

void AppendTensors(const LatentSpec& latent, std::vector<TensorNeed>& needs) {
  for (const LinearSpec* linear : {&latent.q, &latent.q_a, &latent.q_b, &latent.kv_a, &latent.kv_b})
    AppendPart(*linear, needs);
  AppendPart(latent.q_a_norm, needs);
  AppendPart(latent.kv_a_norm, needs);
}

}  // namespace oscar
