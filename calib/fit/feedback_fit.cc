// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/fit/feedback_fit.h"

#include <fmt/format.h>

#include "linalg/error_feedback.h"

namespace oscar {
namespace {

constexpr double kDamping = 0.2;  // .1 to .3 were equally good

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

}  // namespace

std::vector<double> FeedbackFactors(const CacheSide& side, int64_t num_kv_heads,
                                    const std::function<Matrix(int64_t head)>& metric,
                                    std::string_view what) {
  // Readers use the query rotation, whose transpose undoes the rotation of rows.
  const std::vector<double>& matrices =
      side.query_rotation.empty() ? side.rotation : side.query_rotation;
  std::vector<double> factors;
  for (int64_t head = 0; head < num_kv_heads; ++head) {
    const int64_t of_head = side.num_rotations == 1 ? 0 : head;
    Matrix reader = Eigen::Map<const RowMajor>(matrices.data() + of_head * side.dim * side.dim,
                                               side.dim, side.dim);
    if (!side.pair_scale.empty()) {
      const Eigen::Map<const Vector> scale(side.pair_scale.data() + head * side.dim, side.dim);
      reader = scale.cwiseInverse().asDiagonal() * reader;
    }
    const RowMajor factor = FeedbackFactor(reader.transpose() * metric(head) * reader, kDamping,
                                           fmt::format("{}, head {}", what, head));
    factors.insert(factors.end(), factor.data(), factor.data() + factor.size());
  }
  return factors;
}

void FitKeyFeedback(const LayerMoments& moments, CacheSide& keys) {
  keys.feedback = FeedbackFactors(
      keys, moments.num_kv_heads, [&](int64_t head) { return moments.QueryCovariance(head); },
      fmt::format("layer {}, error feedback of keys", moments.layer_id));
}

}  // namespace oscar
