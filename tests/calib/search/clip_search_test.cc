// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/search/clip_search.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "calib/cache/side_tensors.h"
#include "calib/fit/fit.h"
#include "linalg/affine_codec.h"
#include "tests/calib/observe/golden_layer.h"

namespace oscar {
namespace {

const std::vector<double> kCandidates = {0.8, 0.9, 0.96, 1.0};

// Computes the curve with the scalar codec on float32 rows and weights errors in the original
// basis.
std::vector<double> PlainCurve(const at::Tensor& rows, const std::vector<Matrix>& importance,
                               const SideResult& side) {
  const int64_t tokens = rows.size(0), heads = rows.size(1), dim = rows.size(2);
  std::vector<double> curve;
  for (double ratio : kCandidates) {
    double error = 0, energy = 0;
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t which = side.num_rotations == 1 ? 0 : head;
      const Eigen::Map<const Matrix> r_transposed(side.rotation.data() + which * dim * dim, dim,
                                                  dim);
      for (int64_t t = 0; t < tokens; ++t) {
        const std::vector<double> row = Values(rows[t][head]);
        const Eigen::Map<const Vector> x(row.data(), dim);
        const Vector y = r_transposed * x;  // (x R)ᵀ
        std::vector<float> y32(y.data(), y.data() + dim), stored(static_cast<size_t>(dim));
        QuantizeDequantizeAffineRow<float>(y32, {2, dim, MetadataType::kFloat32},
                                           {ratio, ClipMethod::kSort}, stored);
        Vector e(dim);
        for (int64_t i = 0; i < dim; ++i)
          e[i] = static_cast<double>(stored[static_cast<size_t>(i)]) - y[i];
        const Vector back = r_transposed.transpose() * e;
        const Matrix& c = importance[static_cast<size_t>(head)];
        error += back.dot(c * back);
        energy += x.dot(c * x);
      }
    }
    curve.push_back(error / energy);
  }
  return curve;
}

TEST(ClipSearch, EqualsTheCurveWrittenOut) {
  const GoldenLayer layer = RandomLayer(4, 2, 16, 16, {90}, {}, 8);
  const ObservedLayer observed = Observe(layer, SplitHeldOut({90}, 0), 8);
  LayerMoments moments = observed.fit;
  LayerFit fit = FitLayer(moments, {});
  std::vector<Matrix> importance = {moments.QueryCovariance(0), moments.QueryCovariance(1)};
  for (SideResult* side : {&fit.k, &fit.k_shared}) {
    SearchClip(layer.k[0], importance, kCandidates, 16, *side);
    const std::vector<double> expected = PlainCurve(layer.k[0], importance, *side);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(side->clip_error[i], expected[i], 1e-4 * expected[i]);
    const auto best = std::min_element(side->clip_error.begin(), side->clip_error.end()) -
                      side->clip_error.begin();
    EXPECT_EQ(side->clip_ratio, kCandidates[static_cast<size_t>(best)]);
  }
}

TEST(ClipSearch, TiesGoToTheLargerRatio) {
  SideResult side = IdentitySide(4);
  const at::Tensor rows = at::tensor({-1.0f, 1.0f, -1.0f, 1.0f})
                              .view({1, 1, 4})
                              .repeat({5, 1, 1});  // clipping changes nothing
  SearchClip(rows, {Matrix::Identity(4, 4)}, kCandidates, 4, side);
  EXPECT_EQ(side.clip_ratio, 1.0);
}

TEST(ClipSearch, StaticThresholdIsTheOrderStatisticOverAllTokens) {
  SideResult side = HadamardSide(8);
  side.clip_ratio = 0.9;
  const GoldenLayer layer = RandomLayer(2, 2, 8, 8, {30, 11}, {}, 9);
  StaticThresholds(layer.k, side);
  for (int64_t head = 0; head < 2; ++head) {
    std::vector<double> magnitudes;
    for (const at::Tensor& k : layer.k) {
      const at::Tensor y = k.select(1, head).to(at::kFloat).matmul(RotationTensor(side)[0]).abs();
      const std::vector<double> values = Values(y);
      magnitudes.insert(magnitudes.end(), values.begin(), values.end());
    }
    std::sort(magnitudes.begin(), magnitudes.end());
    EXPECT_NEAR(side.clip_threshold[static_cast<size_t>(head)],
                magnitudes[static_cast<size_t>(0.9 * 41 * 8)], 1e-6);
  }
}

}  // namespace
}  // namespace oscar
