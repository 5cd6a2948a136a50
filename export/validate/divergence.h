// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// How soon an arm leaves the path that the exact model takes, and how far. Up to the first token of
// which the arm has another first choice, what the arm would write by itself is the same; from
// there on it is the exact model's path still, read by the arm.
#pragma once

#include <cstdint>
#include <span>

#include "export/measures/arm.h"
#include "export/validate/token_errors.h"

namespace oscar {

// The member "reasoning" of an arm in report.json. `tokens`: those of each continuation in order,
// continuation after continuation; intervals resample continuations.
measures::ReasoningErrors ReasoningReport(std::span<const ScoredToken> tokens,
                                          const TokenErrors& arm, int64_t resamples, uint64_t seed);

}  // namespace oscar
