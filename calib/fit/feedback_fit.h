// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Factors of error feedback (linalg/error_feedback.h) for a side that is fitted.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "calib/cache_side.h"
#include "calib/moments/layer_moments.h"
#include "linalg/matrix.h"

namespace oscar {

// Returns CacheSide::feedback for turned rows of `side`. `metric(head)` [dim, dim] is the second
// moment of what reads rows of the model, before the turn: queries for keys, the output projection
// for values. Throws NumericalError, naming `what` and the head, where there is no factor.
std::vector<double> FeedbackFactors(const CacheSide& side, int64_t num_kv_heads,
                                    const std::function<Matrix(int64_t head)>& metric,
                                    std::string_view what);

// Sets the keys' factors in the metric of the queries that `moments` know.
void FitKeyFeedback(const LayerMoments& moments, CacheSide& keys);

}  // namespace oscar
