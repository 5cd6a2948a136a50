// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/percentile_clip.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

template <typename T>
std::vector<T> Magnitudes(std::span<const T> row) {
  if (!std::all_of(row.begin(), row.end(), [](T y) { return std::isfinite(y); })) {
    throw NumericalError(fmt::format("clip: a row of {} values contains NaN or Inf", row.size()));
  }
  std::vector<T> magnitudes(row.size());
  std::transform(row.begin(), row.end(), magnitudes.begin(), [](T y) { return std::abs(y); });
  return magnitudes;
}

}  // namespace

std::optional<int64_t> ClipIndex(double ratio, int64_t dim) {
  OSCAR_CHECK_LT(0, dim);
  if (std::isnan(ratio)) throw UsageError("the clip ratio is NaN, expected a number of at most 1");
  if (ratio <= 0) return std::nullopt;
  if (ratio >= 1) return dim - 1;
  // The result is less than dim, because a ratio below 1 is at most 1 - 2^-53, and its product with
  // dim is not rounded up to dim.
  return static_cast<int64_t>(ratio * static_cast<double>(dim));
}

template <typename T>
T ClipThresholdSort(std::span<const T> row, double ratio) {
  const auto index = ClipIndex(ratio, static_cast<int64_t>(row.size()));
  if (!index) return std::numeric_limits<T>::infinity();
  std::vector<T> magnitudes = Magnitudes(row);
  const auto nth = magnitudes.begin() + *index;
  std::nth_element(magnitudes.begin(), nth, magnitudes.end());
  return *nth;
}

template <typename T>
T ClipThresholdBisect(std::span<const T> row, double ratio) {
  const auto dim = static_cast<int64_t>(row.size());
  const auto index = ClipIndex(ratio, dim);
  if (!index) return std::numeric_limits<T>::infinity();
  const std::vector<T> magnitudes = Magnitudes(row);
  const int steps = std::bit_width(static_cast<uint64_t>(dim - 1));  // ceil(log2 dim)
  T low = 0;
  T high = *std::max_element(magnitudes.begin(), magnitudes.end());
  for (int step = 0; step < steps; ++step) {
    const T middle = T{0.5} * (low + high);
    const auto above = std::count_if(magnitudes.begin(), magnitudes.end(),
                                     [middle](T magnitude) { return magnitude > middle; });
    (above > dim - *index ? low : high) = middle;
  }
  return high;
}

template <typename T>
T ClipThreshold(std::span<const T> row, double ratio, ClipMethod method) {
  if (method == ClipMethod::kBisect && static_cast<int64_t>(row.size()) >= kMinBisectDim) {
    return ClipThresholdBisect(row, ratio);
  }
  return ClipThresholdSort(row, ratio);
}

template <typename T>
void ClampRow(std::span<T> row, T threshold) {
  for (T& y : row) y = std::clamp(y, -threshold, threshold);
}

template float ClipThresholdSort(std::span<const float>, double);
template double ClipThresholdSort(std::span<const double>, double);
template float ClipThresholdBisect(std::span<const float>, double);
template double ClipThresholdBisect(std::span<const double>, double);
template float ClipThreshold(std::span<const float>, double, ClipMethod);
template double ClipThreshold(std::span<const double>, double, ClipMethod);
template void ClampRow(std::span<float>, float);
template void ClampRow(std::span<double>, double);

}  // namespace oscar
