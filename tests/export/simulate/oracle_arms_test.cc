// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the simulator and the row comparison of oscar-validate with the oracle, an independent
// float64 implementation (tests/linalg/oracle_pack.h). The KL and output error of every query head
// must agree to 1e-6 for every arm (rotation, clipping, windows). If the same caches are compared
// in float32, they must agree to 1e-3.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "calib/cache/row_comparison.h"
#include "export/simulate/rotated_quantizer.h"
#include "tests/linalg/oracle_pack.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

constexpr double kKeyClip = 0.96, kValueClip = 0.92;

at::Tensor Tensor(const std::vector<double>& values, int64_t heads, int64_t dim) {
  return at::tensor(values, at::kDouble).view({-1, heads, dim});
}

at::Tensor Stack(const std::vector<Matrix>& rotations) {
  std::vector<at::Tensor> tensors;
  for (const Matrix& r : rotations) {
    const Matrix row_major = r.transpose();
    tensors.push_back(
        at::tensor(std::vector<double>(row_major.data(), row_major.data() + row_major.size()),
                   at::kDouble)
            .view({r.rows(), r.cols()}));
  }
  return at::stack(tensors);
}

// Makes the quantizer of an arm such as "oscar_head_paper_clip". "paper" is the target of the fit,
// which affects only values.
RotatedQuantizer QuantizerOf(std::string arm, bool keys, const OracleLayer& layer,
                             const std::vector<HeadStatistics>& heads) {
  RotatedQuantizer quantizer;
  if (arm.ends_with("_clip")) {
    quantizer.codes.clip = {keys ? kKeyClip : kValueClip};
    arm.resize(arm.size() - 5);
  }
  if (arm == "naive") return quantizer;
  if (arm == "hadamard") {
    quantizer.rotation = Stack({HadamardRotation(layer.shape.head_dim).matrix()});
    return quantizer;
  }
  const bool shared = arm.starts_with("oscar_shared");
  const auto member = keys ? &HeadStatistics::query_covariance
                           : StatisticNamed("c_v_" + arm.substr(arm.rfind('_') + 1));
  std::vector<Matrix> rotations;
  for (const HeadStatistics& head : heads) {
    const Matrix c = shared ? MeanOverHeads(heads, member) : Matrix(head.*member);
    rotations.push_back(Compose(SymmetricEigenbasis(c, arm), Composition::kRHPbr).matrix());
    if (shared) break;
  }
  quantizer.rotation = Stack(rotations);
  return quantizer;
}

CacheWindows WindowsOf(const std::string& name) {  // like "sink64_recent256"
  const size_t underscore = name.find('_');
  return {std::stoll(name.substr(4, underscore - 4)), std::stoll(name.substr(underscore + 7))};
}

// Compares each query head with the oracle's value for it.
void ExpectErrors(const RowErrors& errors, const at::Tensor& output_sq, const CacheWindows& windows,
                  const Json& expected, double tolerance, double floor) {
  const at::Tensor kl = errors.kl.flatten(0, 1).to(at::kDouble);
  const at::Tensor output = errors.output_error_sq.flatten(0, 1).to(at::kDouble).sum(-1);
  const at::Tensor energy = output_sq.flatten(0, 1).to(at::kDouble).sum(-1);
  const auto beyond = at::arange(kl.size(1)).ge(windows.sink + windows.recent).to(at::kDouble);
  for (int64_t head = 0; head < kl.size(0); ++head) {
    const auto expect = [&](const char* what, double actual) {
      const double value = expected.at(what).at(static_cast<size_t>(head)).get<double>();
      EXPECT_NEAR(actual, value, tolerance * value + floor) << what << ", query head " << head;
    };
    expect("kl_mean", kl[head].mean().item<double>());
    expect("kl_max", kl[head].max().item<double>());
    expect("output_rel_error", (output[head] / energy[head]).sqrt().item<double>());
    if (beyond.sum().item<double>() > 0)
      expect("kl_mean_beyond", (kl[head] * beyond).sum().div(beyond.sum()).item<double>());
  }
}

// Compares every arm of one layer under every window setting. Returns the number of comparisons.
int64_t CompareLayer(const OracleLayer& layer) {
  const AttentionShape& s = layer.shape;
  const std::vector<HeadStatistics> heads = StatisticsOf(layer);
  AttentionSpec spec;
  spec.num_q_heads = s.num_q_heads;
  spec.num_kv_heads = s.num_kv_heads;
  spec.head_dim = spec.v_head_dim = s.head_dim;
  spec.scale = layer.rule.scale;
  const at::Tensor q = Tensor(layer.q, s.num_q_heads, s.head_dim),
                   k = Tensor(layer.k, s.num_kv_heads, s.head_dim),
                   v = Tensor(layer.v, s.num_kv_heads, s.v_head_dim);
  const Json& attention = layer.expected.at("attention");
  std::vector<std::string> names;
  std::vector<CacheWindows> windows;
  std::vector<ExactSides> exact;
  for (const auto& [name, arms] : attention.items()) {
    names.push_back(name);
    windows.push_back(WindowsOf(name));
    exact.push_back({ExactInWindows(windows.back()), ExactInWindows(windows.back())});
  }
  std::vector<std::string> arms;
  std::vector<std::pair<at::Tensor, at::Tensor>> stored;
  for (const auto& [arm, expected] : attention.at(names[0]).items()) {
    if (!expected.is_object()) continue;
    arms.push_back(arm);
    stored.emplace_back(RoundTrip(QuantizerOf(arm, true, layer, heads), k),
                        RoundTrip(QuantizerOf(arm, false, layer, heads), v));
  }
  int64_t compared = 0;
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    RowComparison comparison(spec, k, v, dtype);
    comparison.SetRows({at::arange(q.size(0)), q});
    for (size_t a = 0; a < arms.size(); ++a) {
      const std::vector<RowErrors> errors = comparison.Compare(
          comparison.Prepare({stored[a].first, stored[a].second, {}, {}}), {}, exact);
      for (size_t i = 0; i < windows.size(); ++i) {
        SCOPED_TRACE(fmt::format("layer {}, {}, {}", layer.id, names[i], arms[a]));
        const bool in_float64 = dtype == at::kDouble;
        // The floor matters where all keys are exact and the oracle's error is 0.
        ExpectErrors(errors[i], comparison.reference().output_sq, windows[i],
                     attention.at(names[i]).at(arms[a]), in_float64 ? 1e-6 : 1e-3,
                     in_float64 ? 1e-14 : 1e-6);
        ++compared;
        if (::testing::Test::HasFailure()) return compared;  // one arm's report is enough
      }
    }
  }
  return compared;
}

TEST(OracleArms, AgreeInFloat64AndInFloat32) {
  OSCAR_PACK_OR_SKIP(path, "oracle");
  int64_t compared = 0;
  for (const OracleModel& model : ReadOracle(path)) {
    SCOPED_TRACE(model.name);
    for (const OracleLayer& layer : model.layers) {
      compared += CompareLayer(layer);
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(compared, 1000);
}

}  // namespace
}  // namespace oscar
