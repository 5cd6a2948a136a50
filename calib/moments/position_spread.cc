// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/moments/position_spread.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "linalg/base/check.h"
#include "linalg/base/parallel_for.h"
#include "linalg/matrix.h"

namespace oscar {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Rotates row vectors as rope does for `offset` positions.
void Turn(Eigen::Ref<RowMajor> rows, const RopeSpec& rope, const std::vector<double>& frequencies,
          double offset) {
  for (int64_t i = 0; i < std::ssize(frequencies); ++i) {
    const double angle = frequencies[static_cast<size_t>(i)] * offset;
    const double cos = std::cos(angle), sin = std::sin(angle);
    const RopePair pair = PairOf(rope, i);
    const Vector first = rows.col(pair.first), second = rows.col(pair.second);
    rows.col(pair.first) = cos * first - sin * second;
    rows.col(pair.second) = cos * second + sin * first;
  }
}

}  // namespace

int64_t DefaultContext(int64_t longest_sequence) {
  return std::max(kLeastContext, 2 * longest_sequence);
}

LayerMoments SpreadOverPositions(LayerMoments moments, int64_t length, int64_t context) {
  if (!moments.rope) return moments;
  const RopeSpec rope = *moments.rope;
  if (rope.rotary_dim == 0 || length <= 0 || context <= length) return moments;
  OSCAR_CHECK_LE(rope.rotary_dim, moments.head_dim);
  const std::vector<double> frequencies = InverseFrequencies(rope);
  const int64_t offsets = (context + length - 1) / length, dim = moments.head_dim;
  const auto spread = [&](std::vector<double>& sums, Eigen::Index rows, bool both_sides) {
    ParallelFor(std::ssize(sums) / (rows * dim), [&](int64_t head) {
      Eigen::Map<RowMajor> sum(sums.data() + head * rows * dim, rows, dim);
      RowMajor total = RowMajor::Zero(rows, dim);
      for (int64_t i = 0; i < offsets; ++i) {
        const auto offset = static_cast<double>(i * length);
        RowMajor turned = sum;
        Turn(turned, rope, frequencies, offset);
        if (both_sides) {
          turned.transposeInPlace();
          Turn(turned, rope, frequencies, offset);
        }
        total += turned;
      }
      sum = total / static_cast<double>(offsets);
    });
  };
  spread(moments.query, dim, true);
  spread(moments.key, dim, true);
  spread(moments.key_sum, 1, false);
  spread(moments.attended_key, dim, true);
  spread(moments.attended_key_sum, 1, false);
  return moments;
}

}  // namespace oscar
