// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The text for model passes that measure next-token cost. The cost of each single choice is
// measured on documents to which transforms were fitted; the cost of a whole plan is measured on
// held-out documents. So a plan is not judged on the text from which it was made.
#pragma once

#include <cstdint>
#include <vector>

#include "calib/held_out.h"

namespace oscar {

using TokenTexts = std::vector<std::vector<int32_t>>;  // token ids

// Collects up to `tokens` tokens, as passages of `least` to 4096 tokens from as many documents as
// possible, evenly spread. A passage ends at the document's last fitted row. If there are too few
// such passages, shorter documents follow, the longest first, and then documents that were held
// out.
TokenTexts FittedText(const TokenTexts& sequences, const HeldOutSplit& split, int64_t tokens,
                      int64_t least);

// Collects at most `tokens` tokens. A sequence held out entirely contributes its first 4096 tokens;
// a sequence whose tail was held out contributes its last 4096. Throws InputError if no sequence
// contributes two tokens.
TokenTexts HeldOutText(const TokenTexts& sequences, const HeldOutSplit& split, int64_t tokens);

int64_t NumTokens(const TokenTexts& texts);

}  // namespace oscar
