// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes the final lines of llama.cpp's llama-perplexity --kl-divergence from a report: Q is the
// model with an arm's cache, base the unquantized model.
#pragma once

#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

// `member`: "text" or "own_words", which `arm` must have. The first line says what was measured.
// Errors after ± treat tokens as independent, as llama-perplexity does; the report's intervals do
// not, and are wider. Lines whose errors and quantiles an older report lacks are left out.
std::string LlamaPerplexityText(const Json& report, const Json& arm, const std::string& member);

}  // namespace oscar
