// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The effect of an arm (a measured configuration) on the answers of samples, which are needles and
// tool calls: which tokens are scored, and how the report summarizes them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/evaluate/needle.h"
#include "export/evaluate/recall.h"
#include "export/validate/token_errors.h"

namespace oscar {

// Returns the tokens of all answers, sample by sample. `first_row` is the hidden row where the
// first sample begins. Keeps references to the samples' rivals.
std::vector<ScoredToken> AnswerTokens(std::span<const NeedleSample> samples, int64_t first_row);

// Returns a score for each sample. `tokens` come from AnswerTokens; `errors` are an arm's errors at
// these tokens.
std::vector<NeedleScore> AnswerScores(std::span<const NeedleSample> samples,
                                      std::span<const ScoredToken> tokens,
                                      const TokenErrors& errors);

// Returns the member "tool_call" of an arm in report.json: exact matches of arguments, over the
// samples that `measurable` counts, and KL, over the tokens of all arguments. Intervals resample
// calls.
measures::ToolCallErrors ToolCallReport(std::span<const NeedleSample> samples,
                                        std::span<const ScoredToken> tokens,
                                        const TokenErrors& errors, const Recall& measurable,
                                        int64_t resamples, uint64_t seed);

}  // namespace oscar
