// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures how soon and how far an arm diverges from the exact model. Up to the first token where
// the arm's most likely token differs, the arm alone would generate the same text. After that
// token, the arm's predictions are still measured on the exact model's text.
#pragma once

#include <cstdint>
#include <span>

#include "export/measures/arm.h"
#include "export/validate/token_errors.h"

namespace oscar {

// Returns the member "reasoning" of an arm in report.json. `tokens`: those of each continuation in
// order, continuation after continuation. Intervals resample continuations.
measures::ReasoningErrors ReasoningReport(std::span<const ScoredToken> tokens,
                                          const TokenErrors& arm, int64_t resamples, uint64_t seed);

}  // namespace oscar
