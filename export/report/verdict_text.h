// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides which of the two texts of a report the verdict uses: "text", or "own_words", which the
// model generated. On text that it generated, a model's perplexity is minimal, and an arm's
// perplexity ratio is in expectation the exponential of its token KL. On a text that is foreign to
// the model, both depend on the text as much as on the cache.
#pragma once

#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

// Makes "verdict_text" of the report's "validation" from the exact arm; null if it has no own
// words. A text that the user chose (`builtin` false) always decides, however foreign it is.
Json VerdictText(const Json& exact_arm, bool builtin);

// Returns an arm with the deciding text as its "text", for the verdict and its gate.
Json ArmOfVerdict(const Json& validation, Json arm);

}  // namespace oscar
