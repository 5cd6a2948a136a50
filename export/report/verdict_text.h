// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides which of the two texts of a report the verdict uses: "text", or "own_words", which the
// model drew. On its own words a model's perplexity is minimal and the ratio of an arm is in
// expectation the exponential of its token KL. On a text that is foreign to the model, both depend
// on the text as much as on the cache.
#pragma once

#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

// Makes "verdict_text" of the report's "validation" from the exact arm; null if it has no own
// words. A text that the user chose (`builtin` false) always decides, however foreign it is.
Json VerdictText(const Json& exact_arm, bool builtin);

// Returns an arm as the verdict and its gate use it: "text" is from the deciding text.
Json ArmOfVerdict(const Json& validation, Json arm);

}  // namespace oscar
