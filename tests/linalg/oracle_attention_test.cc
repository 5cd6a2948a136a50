// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares quantization errors, codes and attention errors of every arm (naive, hadamard, oscar_*)
// with the oracle. The sign rule of eigh.h makes the rotated arms reproducible too; the rotations
// of naive and hadamard do not depend on data.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "capture/files/digest.h"
#include "linalg/affine_codec.h"
#include "tests/linalg/oracle_pack.h"
#include "tests/reference/scalar_attention_kl.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

constexpr double kKeyClip = 0.96;
constexpr double kValueClip = 0.92;

bool EndsWith(const std::string& text, std::string_view end) { return text.ends_with(end); }

// Returns one rotation per KV head of keys or values for an arm such as "oscar_head_paper_clip".
// Names of key arms omit the value target ("paper").
std::vector<Matrix> RotationsOf(std::string arm, bool keys, const OracleLayer& layer,
                                const std::vector<HeadStatistics>& heads) {
  if (EndsWith(arm, "_clip")) arm.resize(arm.size() - 5);
  const int64_t d = layer.shape.head_dim;
  if (arm == "naive") return {heads.size(), IdentityRotation(d).matrix()};
  if (arm == "hadamard") return {heads.size(), HadamardRotation(d).matrix()};
  const bool shared = arm.starts_with("oscar_shared");
  if (!shared && !arm.starts_with("oscar_head")) throw std::runtime_error("unknown arm " + arm);
  const auto member =
      keys ? &HeadStatistics::query_covariance
           : StatisticNamed("c_v_" +
                            arm.substr(std::string_view("oscar_head_").size() + (shared ? 2 : 0)));
  std::vector<Matrix> rotations;
  for (size_t h = 0; h < heads.size(); ++h) {
    const Matrix c = shared ? MeanOverHeads(heads, member) : Matrix(heads[h].*member);
    rotations.push_back(Compose(SymmetricEigenbasis(c, arm), Composition::kRHPbr).matrix());
  }
  return rotations;
}

// Returns one head of a row-major [tokens, heads, dim] tensor as columns [dim, tokens].
Matrix HeadColumns(const std::vector<double>& tensor, int64_t heads, int64_t dim, int64_t head) {
  const auto tokens = static_cast<int64_t>(tensor.size()) / (heads * dim);
  return Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>(tensor.data() + head * dim, dim, tokens,
                                                           Eigen::OuterStride<>(heads * dim));
}

// Keys or values of one arm after a round trip through the quantized cache.
struct QuantizedSide {
  std::vector<Matrix> restored;             // per KV head [dim, tokens], rotated back
  std::vector<double> mse, mean_threshold;  // per KV head
  double max_abs_rotated = 0;
  double mean_scale = 0;
  std::vector<uint8_t> packed;          // of float32 rows, [tokens, kv_heads, dim / 4]
  std::vector<float> first_scale_zero;  // of token 0, head 0
};

double Scale(const Vector& row) { return std::max(row.maxCoeff() - row.minCoeff(), 1e-8) / 3; }

QuantizedSide Quantize(const std::vector<double>& tensor, const AttentionShape& shape,
                       const std::vector<Matrix>& rotations, double ratio) {
  const int64_t d = shape.head_dim;
  const AffineFormat format{.bits = 2, .quant_group_size = d};
  const RowClip clip{ratio, ClipMethod::kSort};
  const auto tokens = static_cast<double>(shape.tokens);
  QuantizedSide side;
  side.packed.resize(static_cast<size_t>(shape.tokens * shape.num_kv_heads * d / 4));
  for (int64_t h = 0; h < shape.num_kv_heads; ++h) {
    const Matrix x = HeadColumns(tensor, shape.num_kv_heads, d, h);
    const Matrix rotated = rotations[h].transpose() * x;
    side.max_abs_rotated = std::max(side.max_abs_rotated, rotated.cwiseAbs().maxCoeff());
    Matrix y = rotated;
    double threshold_sum = 0;
    for (int64_t t = 0; t < shape.tokens; ++t) {
      const std::span<double> row(y.col(t).data(), static_cast<size_t>(d));
      const double threshold = ClipThreshold<double>(row, ratio, clip.method);
      threshold_sum += threshold;
      const Vector clipped = rotated.col(t).cwiseMin(threshold).cwiseMax(-threshold);
      side.mean_scale += Scale(clipped) / (tokens * static_cast<double>(shape.num_kv_heads));
      QuantizeDequantizeAffineRow<double>(row, format, clip, row);

      std::vector<float> values(row.size()), scale_zero(2);
      for (int64_t i = 0; i < d; ++i) values[i] = static_cast<float>(rotated(i, t));
      ClampRow<float>(values, ClipThreshold<float>(values, ratio, clip.method));
      std::vector<uint8_t> codes(row.size());
      EncodeAffineRow(values, format, codes, scale_zero);
      std::ranges::copy(PackQuartered(codes),
                        side.packed.begin() + (t * shape.num_kv_heads + h) * d / 4);
      if (t == 0 && h == 0) side.first_scale_zero = scale_zero;
    }
    side.restored.push_back(rotations[h] * y);
    side.mse.push_back((side.restored.back() - x).squaredNorm() / tokens);
    side.mean_threshold.push_back(threshold_sum / tokens);
  }
  return side;
}

std::string Hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

void ExpectNear(double actual, const Json& expected, double relative, const std::string& what) {
  const double value = expected.get<double>();
  EXPECT_NEAR(actual, value, relative * std::abs(value) + 1e-14) << what;
}

// Compares one side of one arm with the oracle. `c_q` [KV heads] is for keys; null for values.
void CompareSide(const QuantizedSide& side, const Json& expected, const OracleLayer& layer,
                 const std::vector<HeadStatistics>* c_q, double tolerance) {
  const auto dim = static_cast<double>(layer.shape.head_dim);
  const std::vector<double> mse = JsonDoubles(expected.at("mse_per_head"));
  for (size_t h = 0; h < mse.size(); ++h) {
    ExpectNear(side.mse[h], mse[h], tolerance, "mse");
    if (expected.contains("mean_threshold_per_head")) {
      ExpectNear(side.mean_threshold[h], expected.at("mean_threshold_per_head").at(h), tolerance,
                 "threshold");
    }
    if (c_q != nullptr) {
      const Matrix error = side.restored[h] - HeadColumns(layer.k, layer.shape.num_kv_heads,
                                                          layer.shape.head_dim, int64_t(h));
      const double logit_mse =
          error.cwiseProduct((*c_q)[h].query_covariance * error).sum() / double(layer.shape.tokens);
      ExpectNear(logit_mse, expected.at("logit_mse_per_head").at(h), tolerance, "logit mse");
    }
  }
  ExpectNear(side.max_abs_rotated, expected.at("max_abs_rotated"), tolerance, "max");
  ExpectNear(side.mean_scale, expected.at("mean_scale"), tolerance, "mean scale");
  if (expected.contains("clip_index")) {
    EXPECT_EQ(*ClipIndex(c_q != nullptr ? kKeyClip : kValueClip, layer.shape.head_dim),
              expected.at("clip_index").get<int64_t>());
  }
  if (expected.contains("first_row_head0")) {
    const Json& first = expected.at("first_row_head0");
    EXPECT_EQ(Hex(std::span(side.packed).first(size_t(dim) / 4)),
              first.at("packed_hex").get<std::string>());
    ExpectNear(side.first_scale_zero[0], first.at("scale"), 1e-7, "scale");
    ExpectNear(side.first_scale_zero[1], first.at("zero"), 1e-7, "zero");
  }
  if (expected.contains("codes_float32_sha256")) {
    EXPECT_EQ(Sha256Hex(std::as_bytes(std::span(side.packed))),
              expected.at("codes_float32_sha256").get<std::string>());
  }
}

CacheWindows WindowsOf(const std::string& name) {  // "sink64_recent256"
  const size_t underscore = name.find('_');
  return {std::stoll(name.substr(4, underscore - 4)), std::stoll(name.substr(underscore + 7))};
}

// Returns the columns [dim, tokens] of a head as row-major [tokens, dim] values.
std::span<const double> Rows(const Matrix& columns) {
  return {columns.data(), static_cast<size_t>(columns.size())};
}

void CompareAttentionArm(const OracleLayer& layer, const QuantizedSide& keys,
                         const QuantizedSide& values, const CacheWindows& windows,
                         const Json& expected, int64_t rows_beyond, double tolerance) {
  const AttentionShape& s = layer.shape;
  for (int64_t j = 0; j < s.num_q_heads; ++j) {
    const int64_t h = j / s.gqa_ratio();
    const Matrix q = HeadColumns(layer.q, s.num_q_heads, s.head_dim, j);
    const Matrix k = HeadColumns(layer.k, s.num_kv_heads, s.head_dim, h);
    const Matrix v = HeadColumns(layer.v, s.num_kv_heads, s.v_head_dim, h);
    const AttentionError error =
        CompareAttention({s.tokens, s.head_dim, s.v_head_dim, Rows(q), Rows(k),
                          Rows(keys.restored[h]), Rows(v), Rows(values.restored[h])},
                         layer.rule, windows, "oracle");
    SCOPED_TRACE(fmt::format("query head {}", j));
    EXPECT_EQ(error.rows_beyond, rows_beyond);
    ExpectNear(error.kl_mean(), expected.at("kl_mean").at(j), tolerance, "KL");
    ExpectNear(error.kl_max, expected.at("kl_max").at(j), tolerance, "largest KL");
    ExpectNear(error.output_rel_error(), expected.at("output_rel_error").at(j), tolerance,
               "output");
    if (rows_beyond == 0) {  // every key lies inside the windows
      EXPECT_EQ(error.kl_max, 0);
      EXPECT_EQ(error.output_rel_error(), 0);
      continue;
    }
    ExpectNear(*error.kl_mean_beyond(), expected.at("kl_mean_beyond").at(j), tolerance,
               "KL beyond");
    ExpectNear(*error.output_rel_error_beyond(), expected.at("output_rel_error_beyond").at(j),
               tolerance, "output beyond");
  }
}

void CompareLayer(const OracleLayer& layer) {
  const std::vector<HeadStatistics> heads = StatisticsOf(layer);
  std::map<std::string, QuantizedSide> keys, values;
  const auto tolerance_of = [](const std::string& arm) {
    return arm.starts_with("oscar") ? 1e-7 : 1e-10;
  };
  for (const auto& [arm, expected] : layer.expected.at("keys").items()) {
    SCOPED_TRACE("keys, " + arm);
    keys[arm] = Quantize(layer.k, layer.shape, RotationsOf(arm, true, layer, heads),
                         EndsWith(arm, "_clip") ? kKeyClip : 0);
    CompareSide(keys[arm], expected, layer, &heads, tolerance_of(arm));
  }
  for (const auto& [arm, expected] : layer.expected.at("values").items()) {
    SCOPED_TRACE("values, " + arm);
    values[arm] = Quantize(layer.v, layer.shape, RotationsOf(arm, false, layer, heads),
                           EndsWith(arm, "_clip") ? kValueClip : 0);
    CompareSide(values[arm], expected, layer, nullptr, tolerance_of(arm));
  }
  for (const auto& [window, arms] : layer.expected.at("attention").items()) {
    for (const auto& [arm, expected] : arms.items()) {
      if (!expected.is_object()) continue;
      SCOPED_TRACE(window + ", " + arm);
      // The key arm has the same name without the value target.
      std::string key_arm = arm;
      for (const char* target : {"_upstream", "_paper", "_diag"}) {
        const size_t position = key_arm.find(target);
        if (position != std::string::npos) key_arm.erase(position, std::string(target).size());
      }
      CompareAttentionArm(layer, keys.at(key_arm), values.at(arm), WindowsOf(window), expected,
                          arms.at("rows_beyond_windows").get<int64_t>(), tolerance_of(arm));
    }
  }
}

TEST(Oracle, EveryArmOfEveryLayer) {
  OSCAR_PACK_OR_SKIP(path, "oracle");
  for (const OracleModel& model : ReadOracle(path)) {
    for (const OracleLayer& layer : model.layers) {
      SCOPED_TRACE(fmt::format("{}, layer {}", model.name, layer.id));
      CompareLayer(layer);
      if (HasFailure()) return;  // one layer's report is enough
    }
  }
}

}  // namespace
}  // namespace oscar
