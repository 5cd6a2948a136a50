// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The three 2-bit codecs that OSCAR's code calls Lloyd-Max, reproduced exactly:
//
//   exact    Uses the mean and the unbiased deviation of the row. Thresholds 0, +-0.9816, levels
//            +-0.4528, +-1.510.
//   serving  Uses the mean and the biased deviation. The solver's thresholds, but equidistant
//            levels: those of an affine code with scale (2 * 1.50956 / 3) * 1.16 sigma.
//   llama.cpp (Q2_0)  Subtracts the mean of 128 values and divides by the root mean square of 32.
//            Thresholds 0, +-0.6745, levels +-0.4528, +-0.9816, in fp16.
//
// Trap: 0.9816 is a threshold of a Lloyd-Max quantizer, not a level. llama.cpp's outer level is
// wrong (its error for Gaussian values is 0.19 instead of 0.117), but it is kept because existing
// files use it.
#pragma once

#include <array>
#include <cstdint>

namespace oscar {

enum class LloydMaxForm { kExact, kServing, kLlamaCpp };

struct LloydMaxTable {
  std::array<double, 3> thresholds;
  bool inclusive;  // a value on a threshold belongs to the cell above it
  std::array<double, 4> levels;
};
const LloydMaxTable& LloydMaxTableOf(LloydMaxForm form);

inline constexpr double kServingThreshold = 0.9810652732849121;
inline constexpr double kServingScale = 2 * 1.5095585584640503 / 3 * 1.16;  // in units of sigma
inline constexpr double kMinDeviation = 1e-10;    // lower bound in the exact form
inline constexpr double kServingVariance = 1e-8;  // added to the variance
inline constexpr int64_t kLlamaMeanValues = 128;  // values per mean, if this divides the row
inline constexpr int64_t kLlamaScaleValues = 32;  // values that share a scale

// Number of values that share a mean, and number that share a scale; both divide dim.
struct LloydMaxGroups {
  int64_t mean, scale;
};
LloydMaxGroups LloydMaxGroupsOf(LloydMaxForm form, int64_t dim);

}  // namespace oscar
