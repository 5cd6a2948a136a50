// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures how soon and how far an arm diverges from the exact model on text that the exact model
// generated. The arm would generate the same text up to the first token where its most likely token
// differs. Later tokens are still predicted from the exact model's text.
#pragma once

#include <cstdint>
#include <span>

#include "export/measures/arm.h"
#include "export/validate/token_errors.h"

namespace oscar {

// Returns the member "reasoning" of an arm in report.json. `tokens` are the tokens of each
// continuation in order, one continuation after another. Intervals resample continuations.
measures::ReasoningErrors ReasoningReport(std::span<const ScoredToken> tokens,
                                          const TokenErrors& arm, int64_t resamples, uint64_t seed);

}  // namespace oscar
