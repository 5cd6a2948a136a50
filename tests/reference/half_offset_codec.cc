// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/half_offset_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/stored_float.h"

namespace oscar {
namespace {

constexpr float kMaxCode = 3, kMinScale = 1e-8F;

void RequireFinite(std::span<const float> row) {
  if (std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); })) return;
  throw NumericalError(fmt::format("a row of {} values holds NaN or Inf", row.size()));
}

}  // namespace

float ClipThresholdInterpolated(std::span<const float> row, double ratio) {
  OSCAR_CHECK(!row.empty());
  if (ratio <= 0) return std::numeric_limits<float>::infinity();
  RequireFinite(row);
  std::vector<float> sorted(row.size());
  std::transform(row.begin(), row.end(), sorted.begin(), [](float x) { return std::abs(x); });
  std::sort(sorted.begin(), sorted.end());
  const float rank = std::min(static_cast<float>(ratio), 1.0F) * static_cast<float>(row.size() - 1);
  const auto below = static_cast<size_t>(rank);
  const float weight = rank - std::floor(rank);
  const float a = sorted[below], b = sorted[std::min(below + 1, row.size() - 1)];
  return weight < 0.5F ? a + weight * (b - a) : b - (b - a) * (1.0F - weight);
}

HalfOffset EncodeHalfOffsetRow(std::span<const float> x, std::span<uint8_t> codes) {
  OSCAR_CHECK_EQ(x.size(), codes.size());
  RequireFinite(x);
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  const HalfOffset group = {RoundToFloat16(std::max((*high - *low) / kMaxCode, kMinScale)),
                            RoundToFloat16(*low)};
  for (size_t i = 0; i < x.size(); ++i) {
    const float t = std::trunc((x[i] - group.min) / group.scale + 0.5F);
    codes[i] = group.scale == 0 ? 0 : static_cast<uint8_t>(std::clamp(t, 0.0F, kMaxCode));
  }
  return group;
}

void DecodeHalfOffsetRow(std::span<const uint8_t> codes, const HalfOffset& group,
                         std::span<float> y) {
  OSCAR_CHECK_EQ(codes.size(), y.size());
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = static_cast<float>(codes[i]) * group.scale + group.min;
}

}  // namespace oscar
