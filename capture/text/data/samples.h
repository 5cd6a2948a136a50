// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The preview of --show-samples: the actual input of the model, decoded from the token ids. A
// character whose tokens were cut apart shows as U+FFFD.
#pragma once

#include <string>
#include <string_view>

#include "capture/text/data/data_source.h"

namespace oscar {

// Returns the token counts of the data set, and a preview of its first `num_documents` documents:
// origin, length in tokens, beginning and end, including special tokens. If `tokenizer` is null,
// the preview shows ids instead of text.
std::string ShowSamples(const DataSet& data, const Tokenizer* tokenizer, int num_documents);

// Replaces control characters by escapes such as \n, \t and \u{9B}; also line separators and
// characters that change the direction of text.
std::string MakeControlsVisible(std::string_view text);

}  // namespace oscar
