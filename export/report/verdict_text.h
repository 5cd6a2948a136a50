// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// On which of the two texts of a report the verdict rests: "text", which somebody wrote, or
// "own_words", which the model drew. On its own words a model's perplexity is as low as it gets and
// the ratio of an arm is the exponential of its token KL in expectation; on a text that is foreign
// to the model, both are about the text as much as about the cache.
#pragma once

#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

// "verdict_text" of the report's "validation", from the exact arm; null where it has no own words.
// A text that the user chose (`builtin` false) is what the verdict is about, however foreign.
Json VerdictText(const Json& exact_arm, bool builtin);

// An arm as the verdict and its gate see it: "text" is what it does on that text.
Json ArmOfVerdict(const Json& validation, Json arm);

}  // namespace oscar
