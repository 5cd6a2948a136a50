// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides which of a report's two texts the verdict uses: "text", or "own_words", which the model
// generated. On its own words, a model's perplexity is minimal, and the logarithm of an arm's
// perplexity ratio is in expectation its next-token KL. On a text that is foreign to the model,
// both depend on the text as much as on the cache.
#pragma once

#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

// Makes the member "verdict_text" of the report's "validation" from the arm with an exact cache;
// null if that arm has no "own_words". A text that the user chose (`builtin` false) always decides,
// however foreign it is.
Json VerdictText(const Json& exact_arm, bool builtin);

// Returns `arm` with the deciding text as its member "text", for the verdict and its gate.
Json ArmOfVerdict(const Json& validation, Json arm);

}  // namespace oscar
