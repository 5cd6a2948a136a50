// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The clip threshold of one rotated head row y: an order statistic of |y|. Trap: it is taken over
// the whole head row even if quantization groups are shorter. kBisect converges from above to the
// order statistic just below kSort's, with a resolution of max|y| / 2^steps.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace oscar {

enum class ClipMethod {
  kSort,    // "sort": exact; upstream's prefill kernel
  kBisect,  // "bisect": ceil(log2 d) halvings; upstream's decode flush and fused kernels
};

// Returns min(int(ratio * dim), dim - 1), or nothing (no clipping) if ratio <= 0. dim > 0. Throws
// UsageError if ratio is NaN.
std::optional<int64_t> ClipIndex(double ratio, int64_t dim);

// Returns the threshold tau >= 0 for a row [dim], dim > 0; infinity if ratio <= 0. Rounds once per
// operation in T, so that float thresholds equal the kernels' bit for bit. Throws NumericalError if
// the row is clipped and holds NaN or Inf.
template <typename T>
T ClipThresholdSort(std::span<const T> row, double ratio);
template <typename T>
T ClipThresholdBisect(std::span<const T> row, double ratio);

inline constexpr int64_t kMinBisectDim = 64;  // shorter rows are sorted by upstream's kernels too

// Dispatches on the method; kBisect sorts a row shorter than kMinBisectDim.
template <typename T>
T ClipThreshold(std::span<const T> row, double ratio, ClipMethod method);

template <typename T>
void ClampRow(std::span<T> row, T threshold);

}  // namespace oscar
