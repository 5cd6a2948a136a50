// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that the trellis code finds the best path of a small trellis, and that Gaussian rows have
// the known error.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "export/simulate/codecs/trellis_tensor.h"
#include "linalg/stored_float.h"
#include "tests/export/simulate/per_token_rows.h"

namespace oscar {
namespace {

constexpr size_t kValues = 5;
using TrellisRow = std::array<double, kValues>;

double Dot(const TrellisRow& a, const TrellisRow& b) {
  double sum = 0;
  for (size_t i = 0; i < kValues; ++i) sum += a[i] * b[i];
  return sum;
}

// Returns the best of all 2^4 first states and all codes that follow them, by exhaustive search.
TrellisRow BestOfAllPaths(const TrellisRow& x) {
  const std::vector<double> levels = TrellisLevels(4);
  const double deviation = std::sqrt(Dot(x, x) / kValues);
  double least = std::numeric_limits<double>::infinity();
  TrellisRow best = {};
  for (size_t string = 0; string < size_t{1} << (4 + 2 * (kValues - 1)); ++string) {
    TrellisRow path = {}, error = {};
    for (size_t i = 0; i < kValues; ++i) {
      path[i] = levels[string >> 2 * (kValues - 1 - i) & 15];
      error[i] = x[i] / deviation - path[i];
    }
    if (Dot(error, error) >= least) continue;
    least = Dot(error, error);
    best = path;
  }
  const double scale = RoundToFloat16(static_cast<float>(std::sqrt(Dot(x, x) / Dot(best, best))));
  for (double& value : best) value *= scale;
  return best;
}

TEST(Trellis, NoPathIsBetter) {
  at::manual_seed(8);
  const at::Tensor rows = at::randn({40, static_cast<int64_t>(kValues)}, at::kDouble).mul_(3);
  const at::Tensor read = TrellisRoundTrip(rows, 4);
  for (int64_t row = 0; row < rows.size(0); ++row) {
    TrellisRow x = {};
    std::copy_n(rows[row].const_data_ptr<double>(), kValues, x.begin());
    const TrellisRow expected = BestOfAllPaths(x);
    for (size_t i = 0; i < kValues; ++i)
      EXPECT_NEAR(read[row][static_cast<int64_t>(i)].item<double>(), expected[i], 1e-12) << row;
  }
}

// At the scale with the smallest error, codes with 10 and 8 state bits have a known distortion D
// for normal values. At the scale that keeps the row's norm, the error is 2 (1 - sqrt(1 - D)).
TEST(Trellis, GaussianRowsLoseWhatIsKnown) {
  at::manual_seed(9);
  const at::Tensor rows = at::randn({600, 128}, at::kFloat);
  const auto at_norm = [](double distortion) { return 2 * (1 - std::sqrt(1 - distortion)); };
  EXPECT_NEAR(RelativeError(TrellisRoundTrip(rows), rows), at_norm(0.0726), 0.0015);
  EXPECT_NEAR(RelativeError(TrellisRoundTrip(rows, 8), rows), at_norm(0.0816), 0.0015);
  EXPECT_TRUE(TrellisRoundTrip(at::zeros({3, 64})).eq(0).all().item<bool>());
}

}  // namespace
}  // namespace oscar
