// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The text that passes of the model run on to choose by the next token: what choices cost alone is
// measured on documents that transforms were fitted to, what they cost together on those that were
// set aside, so that plans are not judged by the text of their prices.
#pragma once

#include <cstdint>
#include <vector>

#include "calib/held_out.h"

namespace oscar {

using TokenTexts = std::vector<std::vector<int32_t>>;  // ids

// `tokens` in all, of as many documents as passages of `least` tokens (at most 4096) make it, taken
// evenly from all; each passage ends where what was fitted to ends. Shorter documents follow whole,
// the longest first, then those that were set aside: only where that is too little are there fewer.
TokenTexts FittedText(const TokenTexts& sequences, const HeldOutSplit& split, int64_t tokens,
                      int64_t least);

// `tokens` in all: of each sequence that was set aside whole the first 4096, of one whose last rows
// were as many that end in those. Throws InputError where none of them has two tokens, one to
// follow the other.
TokenTexts HeldOutText(const TokenTexts& sequences, const HeldOutSplit& split, int64_t tokens);

int64_t NumTokens(const TokenTexts& texts);

}  // namespace oscar
