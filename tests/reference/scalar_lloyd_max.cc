// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compiled with -ffp-contract=off: one rounding per operation.
#include "tests/reference/scalar_lloyd_max.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "linalg/base/check.h"
#include "linalg/lloyd_max.h"
#include "tests/reference/tree_sum.h"

namespace oscar {
namespace {

template <typename T>
std::array<T, 3> Thresholds(LloydMaxForm form) {
  const auto& t = LloydMaxTableOf(form).thresholds;
  return {static_cast<T>(t[0]), static_cast<T>(t[1]), static_cast<T>(t[2])};
}

template <typename T>
T Mean(std::span<const T> x) {
  std::vector<T> values(x.begin(), x.end());
  return TreeSum<T>(values) / static_cast<T>(x.size());
}

template <typename T>
T SumOfSquares(std::span<const T> x, T mean) {
  std::vector<T> squares(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const T deviation = x[i] - mean;
    squares[i] = deviation * deviation;
  }
  return TreeSum<T>(squares);
}

template <typename T>
T Deviation(std::span<const T> x, T mean, LloydMaxForm form) {
  const T sum = SumOfSquares(x, mean);
  const auto count = static_cast<T>(x.size());
  switch (form) {
    case LloydMaxForm::kExact:
      return std::max(std::sqrt(sum / (count - 1)), static_cast<T>(kMinDeviation));
    case LloydMaxForm::kServing:
      return std::sqrt(sum / count + static_cast<T>(kServingVariance));
    case LloydMaxForm::kLlamaCpp:
      return std::sqrt(sum / count);
  }
  OSCAR_CHECK(!"a LloydMaxForm without a deviation");
  return 0;
}

StoredFloat MetadataOf(LloydMaxForm form, StoredFloat metadata) {
  return form == LloydMaxForm::kLlamaCpp ? StoredFloat::kFloat16 : metadata;
}

}  // namespace

template <typename T>
void EncodeLloydMax(std::span<const T> x, LloydMaxForm form, StoredFloat metadata,
                    std::span<uint8_t> codes, std::span<T> numbers) {
  const LloydMaxGroups groups = LloydMaxGroupsOf(form, static_cast<int64_t>(x.size()));
  const auto scale_values = static_cast<size_t>(groups.scale);
  const auto mean_values = static_cast<size_t>(groups.mean);
  OSCAR_CHECK_EQ(codes.size(), x.size());
  OSCAR_CHECK_EQ(numbers.size() * scale_values, 2 * x.size());
  const std::array<T, 3> thresholds = Thresholds<T>(form);
  const bool inclusive = LloydMaxTableOf(form).inclusive;
  const StoredFloat stored = MetadataOf(form, metadata);
  for (size_t start = 0; start < x.size(); start += scale_values) {
    const T mean = Mean(x.subspan(start / mean_values * mean_values, mean_values));
    const auto group = x.subspan(start, scale_values);
    const T sigma = Deviation(group, mean, form);
    for (size_t i = 0; i < scale_values; ++i) {
      const T z = sigma == 0 ? T{0} : (group[i] - mean) / sigma;
      codes[start + i] = LevelCode<T>(z, thresholds, inclusive);
    }
    T first = sigma, second = mean;
    if (form == LloydMaxForm::kServing) {
      first = sigma * static_cast<T>(kServingScale);
      second = T{1.5} - mean / first;
    }
    numbers[2 * (start / scale_values)] = RoundTo(first, stored);
    numbers[2 * (start / scale_values) + 1] = RoundTo(second, stored);
  }
}

template <typename T>
void DecodeLloydMax(std::span<const uint8_t> codes, std::span<const T> numbers, LloydMaxForm form,
                    std::span<T> y) {
  const LloydMaxGroups groups = LloydMaxGroupsOf(form, static_cast<int64_t>(y.size()));
  OSCAR_CHECK_EQ(codes.size(), y.size());
  OSCAR_CHECK_EQ(numbers.size() * static_cast<size_t>(groups.scale), 2 * y.size());
  const auto& levels = LloydMaxTableOf(form).levels;
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t group = i / static_cast<size_t>(groups.scale);
    const T first = numbers[2 * group], second = numbers[2 * group + 1];
    y[i] = form == LloydMaxForm::kServing ? (static_cast<T>(codes[i]) - second) * first
                                          : second + first * static_cast<T>(levels.at(codes[i]));
  }
}

template void EncodeLloydMax(std::span<const float>, LloydMaxForm, StoredFloat, std::span<uint8_t>,
                             std::span<float>);
template void EncodeLloydMax(std::span<const double>, LloydMaxForm, StoredFloat, std::span<uint8_t>,
                             std::span<double>);
template void DecodeLloydMax(std::span<const uint8_t>, std::span<const float>, LloydMaxForm,
                             std::span<float>);
template void DecodeLloydMax(std::span<const uint8_t>, std::span<const double>, LloydMaxForm,
                             std::span<double>);

}  // namespace oscar
