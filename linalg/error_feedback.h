// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Error feedback moves rounding errors (feedback_codec.h) to coordinates where the reader of a row
// is least sensitive to them. Let the reader's metric be M = U D U^T, with U unit upper triangular.
// An error e then costs e M e^T = sum_j D_j (e_j + sum_{i<j} e_i U_ij)^2. So coordinate j is
// rounded from x_j + sum_{i<j} e_i U_ij. GPTQ (arXiv 2210.17323) and LDLQ (arXiv 2307.13304,
// section 3) do this for weights. The stored format and its reader do not change.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "linalg/feedback_codec.h"  // kMaxFeedback
#include "linalg/matrix.h"

namespace oscar {

// Returns U - I, where U factors Shrunk(metric, damping). The result is strictly upper triangular.
// Its entries are integers within +-kMaxFeedback times the smallest power of two for which all of
// them fit. metric [dim, dim] is the second moment of what reads the rotated rows, e.g. E[q^T q]
// for keys. Throws NumericalError, naming `what`, if the metric is not positive definite (a larger
// damping helps).
Matrix FeedbackFactor(MatrixRef metric, double damping, std::string_view what);

// A factor in the layout that the write kernels read, column by column: U_ij is byte i of column j,
// in units of `unit`, a power of two. Blocks have kFeedbackBlock coordinates. Entries of column j
// in j's own block are 0 at their place, and follow the column's dim bytes instead.
// PackFeedbackFactor throws NumericalError if its argument is not such a factor, or if the unit is
// outside 2^-64 to 2^32.
struct PackedFeedback {
  std::vector<int8_t> columns;  // [dim, FeedbackStride(dim)]
  float unit = 1;
};
PackedFeedback PackFeedbackFactor(MatrixRef factor);

}  // namespace oscar
