// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/simulate/row_context.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "calib/job/refit_layer.h"
#include "export/artifact/artifact_writer.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

std::vector<double> Values(const at::Tensor& x) {
  const at::Tensor host = x.to(at::kDouble).contiguous();
  return {host.const_data_ptr<double>(), host.const_data_ptr<double>() + host.numel()};
}

// Returns [num_kv_heads, dim, dim]: x^T x, summed over tokens and the query heads of a KV head.
std::vector<double> Gram(const at::Tensor& x, int64_t num_kv_heads) {
  const at::Tensor heads = x.to(at::kDouble)
                               .view({x.size(0), num_kv_heads, -1, x.size(2)})
                               .permute({1, 0, 2, 3})
                               .flatten(1, 2);
  return Values(at::matmul(heads.transpose(1, 2), heads));
}

Artifact Fitted(const CalibrationRows& rows, const RowGeometry& g) {
  static int count = 0;
  const auto path = TestScratch(fmt::format("row_context_{}", count++)) / "artifact";
  ClipOptions clip;
  clip.mode = ClipMode::kFixed;
  WriteArtifact(path, SampleInfo(),
                {1, [&](size_t) { return RefitLayer(MomentsOf(rows, g), {}, clip); }});
  return Artifact::Open(path);
}

std::vector<LayerSpec> Layers(const RowGeometry& g) {
  LayerSpec layer;
  layer.attention.num_q_heads = g.num_q_heads;
  layer.attention.num_kv_heads = g.num_kv_heads;
  layer.attention.head_dim = g.head_dim;
  layer.attention.v_head_dim = g.v_head_dim;
  layer.attention.scale = 1 / std::sqrt(static_cast<double>(g.head_dim));
  layer.attention.rope.rotary_dim = g.head_dim;
  return {layer};
}

}  // namespace

LayerMoments MomentsOf(const CalibrationRows& rows, const RowGeometry& g) {
  const at::Tensor q = at::cat(rows.q), k = at::cat(rows.k), v = at::cat(rows.v);
  LayerMoments moments;
  moments.num_q_heads = g.num_q_heads;
  moments.num_kv_heads = g.num_kv_heads;
  moments.head_dim = g.head_dim;
  moments.v_head_dim = g.v_head_dim;
  moments.tokens = q.size(0);
  moments.query = Gram(q, g.num_kv_heads);
  moments.key = Gram(k, g.num_kv_heads);
  moments.key_sum = Values(k.to(at::kDouble).sum(0));
  moments.value = moments.attention_output = moments.diagonal = Gram(v, g.num_kv_heads);
  moments.diagonal_weight.assign(static_cast<size_t>(g.num_kv_heads), 1);
  return moments;
}

CalibrationRows RandomCalibrationRows(const RowGeometry& g) {
  at::manual_seed(g.seed);
  const auto draw = [](std::initializer_list<int64_t> shape) {
    return at::randn(shape, at::kFloat);
  };
  const at::Tensor mean = draw({g.num_kv_heads, g.head_dim});
  at::Tensor k_scale = at::exp(draw({g.num_kv_heads, g.head_dim}).mul(0.5));
  k_scale.select(1, 1).mul_(6);
  k_scale.select(1, g.head_dim / 2).mul_(8);
  const at::Tensor q_scale = at::exp(draw({g.num_q_heads, g.head_dim}).mul(0.5));
  const at::Tensor v_scale = at::exp(draw({g.num_kv_heads, g.v_head_dim}).mul(0.5));
  CalibrationRows rows;
  for (int64_t i = 0; i < g.sequences; ++i) {
    rows.q.push_back(draw({g.tokens, g.num_q_heads, g.head_dim}).mul(q_scale));
    rows.k.push_back(draw({g.tokens, g.num_kv_heads, g.head_dim}).mul(k_scale).add(mean));
    rows.v.push_back(draw({g.tokens, g.num_kv_heads, g.v_head_dim}).mul(v_scale));
  }
  return rows;
}

RowContext::RowContext(const RowGeometry& geometry, const MethodContext::Options& options)
    : layers_(Layers(geometry)),
      artifact_([&] { return Fitted(RandomCalibrationRows(geometry), geometry); }()) {
  context_ = std::make_unique<MethodContext>(artifact_, layers_, options);
  context_->SetRows(RandomCalibrationRows(geometry));
}

void RowContext::AddLayer(int64_t num_kv_heads, int64_t head_dim) {
  layers_.push_back(layers_.front());
  AttentionSpec& attention = layers_.back().attention;
  attention.num_kv_heads = num_kv_heads;
  attention.head_dim = attention.v_head_dim = head_dim;
}

}  // namespace oscar
