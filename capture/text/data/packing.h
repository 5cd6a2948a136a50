// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Joins the documents of one domain by a separator token and cuts the result into sequences of one
// length. This is how language models are trained and perplexity is reported. The separator is
// placed between documents, not after the last one. A document may begin in one sequence and end in
// the next.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "capture/text/data/data_source.h"

namespace oscar {

// Finds the end-of-text token that separates documents. The first of these is used:
//   `requested` (a token, or an id in decimal digits), if not empty
//   <|endoftext|>, if the tokenizer has that added token
//   eos_token of tokenizer_config.json
//   without a tokenizer: eos_token_id of config.json (the first one if it is a list)
// <|endoftext|> comes before eos_token, because the latter ends a turn in instruction-tuned models.
// Throws InputError if there is none, or the tokenizer does not have it.
Separator FindSeparator(const std::filesystem::path& model_directory,
                        const LazyTokenizer& tokenizer, std::string_view requested = {});

// Returns the special tokens that the tokenizer puts in front of a text, possibly none.
std::vector<int32_t> LeadingSpecialTokens(const Tokenizer& tokenizer);
// Returns the tokens that precede the first word of a text: LeadingSpecialTokens, or the separator
// if there are none. Throws like FindSeparator.
std::vector<int32_t> OpeningTokens(const std::filesystem::path& model_directory,
                                   const Tokenizer* tokenizer);

// Joins the documents of each domain and cuts them into sequences of max_sequence tokens. Sequences
// are taken from the domains in turn until the budget is full. Empty documents count as dropped and
// get no separator. A remainder that does not fill a sequence is dropped too. With `shorter`, a
// quarter of max_sequence suffices for a sequence, and the first one may have any length. Sets
// data.counts and data.separator. Throws UsageError for a budget below max_sequence, InputError if
// there are not enough tokens for one sequence.
void PackDocuments(const Separator& separator, int64_t max_sequence, int64_t token_budget,
                   DataSet& data, bool shorter = false);

}  // namespace oscar
