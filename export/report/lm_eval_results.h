// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes a report as a results file of EleutherAI's lm-evaluation-harness 0.4.13
// (lm_eval/result_schema.py), for tools that collect such files. A file describes one model: here,
// the model with the cache of one arm (a measured configuration). Each evaluated text is a task.
#pragma once

#include <optional>
#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

// Returns the name of the validated model.
std::string ModelId(const Json& report);

// Returns "ORG/NAME ARM": the model with that cache.
std::string ModelWithCache(const Json& report, const Json& arm);

// Returns the standard error of a share of `tokens` tokens, which are treated as independent.
// Returns nothing for a single token.
std::optional<double> ShareError(double share, double tokens);

// `arm` must have "text". `date`: seconds since 1970, UTC.
Json LmEvalResults(const Json& report, const Json& arm, double date);

}  // namespace oscar
