// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Where error feedback moves rounding errors (feedback_codec.h): to coordinates in which the reader
// of a row sees least of them. With the reader's metric M = U D U^T, U unit upper triangular, an
// error e costs e M e^T = sum_j D_j (e_j + sum_{i<j} e_i U_ij)^2, so coordinate j is rounded from
// x_j + sum_{i<j} e_i U_ij (GPTQ, arXiv 2210.17323, and LDLQ, arXiv 2307.13304, section 3, of
// weights). Format and reader stay as they are.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "linalg/feedback_codec.h"  // kMaxFeedback
#include "linalg/matrix.h"

namespace oscar {

// U - I, strictly upper triangular, of Shrunk(metric, damping), as integers within +-kMaxFeedback
// times the least power of two. metric [dim, dim], of the turned rows' reader: E[q^T q] of queries
// as they meet turned keys. Throws NumericalError, naming `what`,
// where the metric is not positive definite (a larger damping helps).
Matrix FeedbackFactor(MatrixRef metric, double damping, std::string_view what);

// A factor as the write kernels take it, column by column: U_ij is byte i of column j in units, a
// power of two; those of j's own block of kFeedbackBlock coordinates stand behind the column's dim
// bytes instead, where they are 0. Throws NumericalError if it is not such a factor, or the unit is
// not within 2^-64 to 2^32.
struct PackedFeedback {
  std::vector<int8_t> columns;  // [dim, FeedbackStride(dim)]
  float unit = 1;
};
PackedFeedback PackFeedbackFactor(MatrixRef factor);

}  // namespace oscar
