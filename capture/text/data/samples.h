// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The preview of --show-samples: the actual input of the model, decoded from the token ids. A cut
// inside a character shows as U+FFFD; the tokens themselves are whole.
#pragma once

#include <string>
#include <string_view>

#include "capture/text/data/data_source.h"

namespace oscar {

// Shows the token counts of the data set, then origin, length in tokens, beginning and end of the
// first `num_documents` documents, with special tokens. Shows ids if `tokenizer` is null.
std::string ShowSamples(const DataSet& data, const Tokenizer* tokenizer, int num_documents);

// Shows control characters as \n, \t, \u{9B}; also line separators and characters that change the
// direction of text.
std::string MakeControlsVisible(std::string_view text);

}  // namespace oscar
