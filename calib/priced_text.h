// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The text for model passes that choose by next-token cost. The cost of each single choice is
// measured on documents to which transforms were fitted, and the cost of a whole plan on held-out
// documents. So plans are not judged on the text that set their prices.
#pragma once

#include <cstdint>
#include <vector>

#include "calib/held_out.h"

namespace oscar {

using TokenTexts = std::vector<std::vector<int32_t>>;  // token ids

// Collects up to `tokens` tokens as passages of `least` to 4096 tokens from as many documents as
// possible, evenly spread; a passage ends at the last fitted row. If they are too few, shorter
// documents follow, the longest first, and then documents that were held out.
TokenTexts FittedText(const TokenTexts& sequences, const HeldOutSplit& split, int64_t tokens,
                      int64_t least);

// Collects at most `tokens` tokens. A sequence held out entirely contributes its first 4096 tokens;
// a sequence whose tail was held out contributes its last 4096. Throws InputError if no sequence
// contributes two tokens.
TokenTexts HeldOutText(const TokenTexts& sequences, const HeldOutSplit& split, int64_t tokens);

int64_t NumTokens(const TokenTexts& texts);

}  // namespace oscar
