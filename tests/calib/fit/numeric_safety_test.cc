// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that a degenerate head is either fitted with a finite matrix of measured orthogonality or
// refused with an error that names the layer.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "calib/fit/fit.h"
#include "calib/fit/transform_fit.h"
#include "linalg/base/error.h"
#include "linalg/rotation.h"
#include "tests/calib/moments/sample_moments.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

using Edit = std::function<void(LayerMoments&)>;

void ForEachSumOf(LayerMoments& m, const std::function<void(std::vector<double>&)>& use) {
  for (auto* sum : {&m.query, &m.key, &m.value, &m.attention_output, &m.diagonal}) use(*sum);
}

void Scale(LayerMoments& m, double factor) {
  ForEachSumOf(m, [&](std::vector<double>& sum) {
    for (double& value : sum) value *= factor;
  });
}

// Sets each head's sum to a diagonal matrix with the entries 1, ratio, ratio^2, ...
void Diagonal(std::vector<double>& sum, int64_t heads, int64_t dim, double ratio) {
  std::fill(sum.begin(), sum.end(), 0.0);
  const auto n = static_cast<size_t>(dim);
  for (size_t head = 0; head < static_cast<size_t>(heads); ++head)
    for (size_t i = 0; i < n; ++i)
      sum[(head * n + i) * n + i] = std::pow(ratio, static_cast<double>(i));
}

void ExpectSound(const SideResult& side, const std::string& what) {
  const auto d = static_cast<Eigen::Index>(side.dim);
  ASSERT_GT(side.num_rotations, 0) << what;
  for (int64_t i = 0; i < side.num_rotations; ++i) {
    const Eigen::Map<const Eigen::Matrix<double, -1, -1, Eigen::RowMajor>> r(
        side.rotation.data() + i * d * d, d, d);
    EXPECT_LE(OrthogonalityResidual(Matrix(r)), kMaxOrthogonality) << what;
  }
  for (const double value : side.eigenvalues) EXPECT_TRUE(std::isfinite(value)) << what;
}

// Returns the message of the error if the fit is refused, or "" if it succeeds.
std::string Outcome(LayerMoments moments, const std::string& what) {
  return ErrorOf<NumericalError>([&] {
    moments.CheckFinite();
    const LayerFit fit = FitLayer(moments, {});
    for (const SideResult* side : {&fit.k, &fit.v, &fit.k_shared, &fit.v_shared})
      ExpectSound(*side, what);
  });
}

struct Case {
  const char* name;
  const char* outcome;  // a part of the error message, "" if the fit succeeds
  Edit edit;
};

const Case kCases[] = {
    {"one token", "", [](LayerMoments& m) { m = SampleMoments(7, 1, 1); }},
    {"fewer tokens than dimensions", "",
     [](LayerMoments& m) { m = SampleMoments(7, 3, 1, 64, 64); }},
    {"a head of 96", "", [](LayerMoments& m) { m = SampleMoments(7, 500, 1, 96, 96); }},
    {"a head of 2", "", [](LayerMoments& m) { m = SampleMoments(7, 50, 1, 2, 2); }},
    {"one KV head", "",
     [](LayerMoments& m) {
       m.num_kv_heads = 1;
       ForEachSumOf(m, [](std::vector<double>& sum) { sum.resize(sum.size() / 2); });
       m.key_sum.resize(m.key_sum.size() / 2);
       m.diagonal_weight.resize(1);
     }},
    {"every token the same", "",
     [](LayerMoments& m) {
       ForEachSumOf(m, [](std::vector<double>& sum) { std::fill(sum.begin(), sum.end(), 4.0); });
     }},
    {"condition 1e12", "",
     [](LayerMoments& m) { Diagonal(m.query, 2, 8, std::pow(1e-12, 1.0 / 7)); }},
    {"condition 1e300", "",
     [](LayerMoments& m) { Diagonal(m.query, 2, 8, std::pow(1e-300, 1.0 / 7)); }},
    {"a channel that is never used", "",
     [](LayerMoments& m) {
       for (size_t head = 0; head < 2; ++head)
         for (size_t i = 0; i < 8; ++i) m.query[head * 64 + 8 * i] = m.query[head * 64 + i] = 0;
     }},
    {"very large", "", [](LayerMoments& m) { Scale(m, 1e150); }},
    {"very small", "", [](LayerMoments& m) { Scale(m, 1e-150); }},
    {"a head without energy", "layer 7, KV head 1",
     [](LayerMoments& m) { std::fill(m.query.begin() + 64, m.query.end(), 0.0); }},
    {"values without energy", "layer 7, KV head 0",
     [](LayerMoments& m) { std::fill_n(m.value.begin(), 16, 0.0); }},
    {"NaN", "layer 7, KV head 1",
     [](LayerMoments& m) { m.query.back() = std::numeric_limits<double>::quiet_NaN(); }},
    {"infinity", "layer 7, KV head 0",
     [](LayerMoments& m) { m.value.front() = std::numeric_limits<double>::infinity(); }},
};

TEST(NumericSafety, DegenerateHeadsAreRotatedOrRefusedByName) {
  for (const Case& one : kCases) {
    LayerMoments moments = SampleMoments(7, 200, 1);
    one.edit(moments);
    const std::string outcome = Outcome(moments, one.name);
    EXPECT_EQ(outcome.empty(), std::string_view(one.outcome).empty()) << one.name << outcome;
    EXPECT_TRUE(Says(outcome, one.outcome)) << one.name;
  }
}

// For sums that are denormal or near overflow, both a valid fit and an error that names the layer
// are acceptable.
TEST(NumericSafety, DenormalsAndOverflowAreFittedOrRefused) {
  for (const double factor : {1e-300, 1e-310, 1e-323, 1e300, 1e307}) {
    LayerMoments moments = SampleMoments(7, 200, 1);
    Scale(moments, factor);
    const std::string outcome = Outcome(moments, std::to_string(factor));
    EXPECT_TRUE(outcome == "" || outcome.find("layer 7") != std::string::npos) << outcome;
  }
}

TEST(NumericSafety, TransformsOfDegenerateHeadsAreInvertedOrRefused) {
  for (const Case& one : kCases) {
    for (const double epsilon : {0.1, 1e-3, 0.0}) {
      LayerMoments moments = SampleMoments(7, 200, 1);
      one.edit(moments);
      const KeyRecipe recipe = {
          .kind = KeyTransformKind::kBalanced, .epsilon = epsilon, .centred = true};
      try {
        const KeyFit fit = FitKeyTransform(moments, 0, recipe, {});
        EXPECT_LE(fit.transform.residual, kMaxTransformResidual) << one.name;
        EXPECT_TRUE(fit.transform.x.allFinite() && fit.transform.inverse.allFinite()) << one.name;
      } catch (const NumericalError& error) {
        EXPECT_TRUE(Says(error.what(), "layer 7"));
      }
    }
  }
}

}  // namespace
}  // namespace oscar
