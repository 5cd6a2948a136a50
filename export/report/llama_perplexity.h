// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Prints the numbers of a report in the format of the final lines of llama.cpp's llama-perplexity
// --kl-divergence. Q is the model with an arm's cache, base the model with an unquantized cache.
#pragma once

#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

// `member`: "text" or "own_words" (text that the model generated), which `arm` must have. The first
// line says what was measured. Errors after ± treat tokens as independent, as llama-perplexity
// does. The report's intervals do not, and are wider. Lines are omitted if an older report lacks
// their errors or quantiles.
std::string LlamaPerplexityText(const Json& report, const Json& arm, const std::string& member);

}  // namespace oscar
