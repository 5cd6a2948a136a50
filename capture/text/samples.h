// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The preview of --show-samples: what the model will really be fed, decoded from the token ids.
// A cut inside a character shows as U+FFFD; the tokens themselves are whole.
#pragma once

#include <string>
#include <string_view>

#include "capture/text/data_source.h"

namespace oscar {

// The account of the data set, then of the first `num_documents` documents origin, length in
// tokens, and the beginning and the end; special tokens are shown. `tokenizer` null: the ids
// instead.
std::string ShowSamples(const DataSet& data, const Tokenizer* tokenizer, int num_documents);

// Control characters as \n, \t, \u{9B}; also line separators and what changes the direction of
// text.
std::string MakeControlsVisible(std::string_view text);

}  // namespace oscar
