// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compiled with -ffp-contract=off: one rounding per operation.
#include "tests/reference/scalar_llama_q2.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/lloyd_max.h"
#include "linalg/percentile_clip.h"
#include "linalg/stored_float.h"
#include "tests/reference/scalar_lloyd_max.h"  // LevelCode, LloydMaxTableOf
#include "tests/reference/tree_sum.h"

namespace oscar {
namespace {

float Sum(std::vector<float> values) { return TreeSum<float>(values); }

}  // namespace

void QuantizeDequantizeLlamaQ2(std::span<const float> x, double clip_ratio,
                               std::span<uint8_t> codes, std::span<float> y) {
  OSCAR_CHECK_EQ(x.size(), y.size());
  if (!std::all_of(x.begin(), x.end(), [](float value) { return std::isfinite(value); }))
    throw NumericalError(fmt::format("a row of {} values holds NaN or Inf", x.size()));
  const auto size = static_cast<size_t>(LlamaQ2GroupSize(static_cast<int64_t>(x.size())));
  OSCAR_CHECK_EQ(x.size() % size, size_t{0});
  const LloydMaxTable& table = LloydMaxTableOf(LloydMaxForm::kLlamaCpp);
  const std::array<float, 3> thresholds = {static_cast<float>(table.thresholds[0]),
                                           static_cast<float>(table.thresholds[1]),
                                           static_cast<float>(table.thresholds[2])};
  for (size_t start = 0; start < x.size(); start += size) {
    const auto group = x.subspan(start, size);
    const float mean = Sum({group.begin(), group.end()}) / static_cast<float>(size);
    std::vector<float> rest(size);
    for (size_t i = 0; i < size; ++i) rest[i] = group[i] - mean;
    if (clip_ratio > 0 && clip_ratio < 1)
      ClampRow<float>(rest, ClipThresholdSort<float>(rest, clip_ratio));
    for (size_t block = 0; block < size; block += kLlamaQ2SigmaValues) {
      std::vector<float> squares(kLlamaQ2SigmaValues);
      for (size_t i = 0; i < squares.size(); ++i) squares[i] = rest[block + i] * rest[block + i];
      const float sigma = std::sqrt(Sum(squares) / static_cast<float>(kLlamaQ2SigmaValues));
      const float inverse = sigma > 1e-8F ? 1.0F / sigma : 0.0F;
      for (size_t i = 0; i < squares.size(); ++i) {
        const uint8_t code = LevelCode<float>(rest[block + i] * inverse, thresholds, true);
        if (!codes.empty()) codes[start + block + i] = code;
        y[start + block + i] = RoundToFloat16(sigma) * static_cast<float>(table.levels.at(code)) +
                               RoundToFloat16(mean);
      }
    }
  }
}

}  // namespace oscar
