// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Error feedback moves rounding errors (feedback_codec.h) to coordinates where the reader of a row
// is least sensitive to them. With the reader's metric M = U D U^T, U unit upper triangular, an
// error e costs e M e^T = sum_j D_j (e_j + sum_{i<j} e_i U_ij)^2, so coordinate j is rounded from
// x_j + sum_{i<j} e_i U_ij (GPTQ, arXiv 2210.17323, and LDLQ, arXiv 2307.13304, section 3, do this
// for weights). Format and reader do not change.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "linalg/feedback_codec.h"  // kMaxFeedback
#include "linalg/matrix.h"

namespace oscar {

// Returns U - I of Shrunk(metric, damping), strictly upper triangular, as integers within
// +-kMaxFeedback times the smallest power of two that fits. metric [dim, dim] is that of the
// rotated rows' reader, e.g. E[q^T q] of the queries that meet rotated keys. Throws NumericalError,
// naming `what`, if the metric is not positive definite (a larger damping helps).
Matrix FeedbackFactor(MatrixRef metric, double damping, std::string_view what);

// A factor in the layout of the write kernels, column by column: U_ij is byte i of column j, in
// units of a power of two. Entries of j's own block of kFeedbackBlock coordinates are 0 there and
// follow after the column's dim bytes. Throws NumericalError if it is not such a factor, or the
// unit is not within 2^-64 to 2^32.
struct PackedFeedback {
  std::vector<int8_t> columns;  // [dim, FeedbackStride(dim)]
  float unit = 1;
};
PackedFeedback PackFeedbackFactor(MatrixRef factor);

}  // namespace oscar
