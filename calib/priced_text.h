// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The text for model passes that choose by the next token. The cost of each choice alone is
// measured on documents that transforms were fitted to, the cost of a whole plan on held-out
// documents. So plans are not judged on the text that set their prices.
#pragma once

#include <cstdint>
#include <vector>

#include "calib/held_out.h"

namespace oscar {

using TokenTexts = std::vector<std::vector<int32_t>>;  // token ids

// Collects up to `tokens` tokens from as many documents as passages of at least `least` tokens
// allow (at most 4096 each), evenly spread; a passage ends at the last fitted row. If that is too
// little, shorter documents follow, the longest first, and then documents that were held out.
TokenTexts FittedText(const TokenTexts& sequences, const HeldOutSplit& split, int64_t tokens,
                      int64_t least);

// Collects at most `tokens` tokens. A sequence held out entirely contributes its first 4096 tokens,
// one whose last rows are held out its last 4096. Throws InputError if no sequence contributes two
// tokens.
TokenTexts HeldOutText(const TokenTexts& sequences, const HeldOutSplit& split, int64_t tokens);

int64_t NumTokens(const TokenTexts& texts);

}  // namespace oscar
