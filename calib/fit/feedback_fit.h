// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Fits the factors of error feedback (linalg/error_feedback.h) for a fitted side.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "calib/cache_side.h"
#include "calib/moments/layer_moments.h"
#include "linalg/matrix.h"

namespace oscar {

// Returns CacheSide::feedback for rotated rows of `side`. `metric(head)` [dim, dim] is the second
// moment, before rotation, of the rows' reader: queries for keys, the output projection for values.
// Throws NumericalError, naming `what` and the head, if a metric has no factor.
std::vector<double> FeedbackFactors(const CacheSide& side, int64_t num_kv_heads,
                                    const std::function<Matrix(int64_t head)>& metric,
                                    std::string_view what);

// Sets the keys' factors, with the second moment of the queries in `moments` as the metric.
void FitKeyFeedback(const LayerMoments& moments, CacheSide& keys);

}  // namespace oscar
