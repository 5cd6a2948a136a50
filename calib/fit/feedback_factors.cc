// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/fit/feedback_factors.h"

#include <fmt/format.h>

#include "linalg/error_feedback.h"

namespace oscar {
namespace {

constexpr double kDamping = 0.2;  // .1 to .3 measured alike

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

}  // namespace

std::vector<Matrix> FeedbackFactors(const CacheSide& side, int64_t num_kv_heads,
                                    const std::function<Matrix(int64_t head)>& metric,
                                    std::string_view what) {
  const std::vector<double>& matrices =
      side.query_rotation.empty() ? side.rotation : side.query_rotation;
  std::vector<Matrix> factors;
  for (int64_t head = 0; head < num_kv_heads; ++head) {
    const int64_t of_head = side.num_rotations == 1 ? 0 : head;
    const Eigen::Map<const RowMajor> turn(matrices.data() + of_head * side.dim * side.dim, side.dim,
                                          side.dim);
    Matrix reader = turn;
    if (!side.pair_scale.empty()) {
      const Eigen::Map<const Vector> scale(side.pair_scale.data() + head * side.dim, side.dim);
      reader = scale.cwiseInverse().asDiagonal() * reader;
    }
    factors.push_back(FeedbackFactor(reader.transpose() * metric(head) * reader, kDamping,
                                     fmt::format("{}, head {}", what, head)));
  }
  return factors;
}

}  // namespace oscar
