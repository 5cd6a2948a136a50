// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Factors of error feedback (linalg/error_feedback.h) for a side of a cache, from what reads it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "calib/cache_side.h"
#include "linalg/matrix.h"

namespace oscar {

// One [dim, dim] for each KV head. Rows turned by `side` meet readers of its query rotation, whose
// second moment in the model's space is `metric`; what undoes the turn is that matrix's transpose.
// Throws NumericalError, naming `what` and the head, where a moment is not positive definite.
std::vector<Matrix> FeedbackFactors(const CacheSide& side, int64_t num_kv_heads,
                                    const std::function<Matrix(int64_t head)>& metric,
                                    std::string_view what);

}  // namespace oscar
