// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Prompts from the calibration data, which a model continues in its own words. A chat gives one
// prompt: its messages up to the last that is not the assistant's, and the template's beginning of
// an answer. Any other text gives one per passage: its first tokens, as the user's message if the
// model has a chat template, otherwise unchanged. Passages are cut between tokens and may begin or
// end inside a character; such broken characters are removed.
#pragma once

#include <cstdint>
#include <vector>

#include "capture/text/data/data_source.h"

namespace oscar {

// Tokens in a passage of text, and distance between the beginnings of passages.
inline constexpr int64_t kPassageTokens = 96, kPassageStride = 512;

struct PromptSet {
  std::vector<Document> prompts;  // origin "self:prompts.jsonl:12"; later passages "...#2"
  std::string chat_format;        // like DataSet::chat_format
  Json chat_template;
  int64_t too_long = 0;  // prompts omitted because they exceed `longest`
};

// Loads at most `most` prompts of at most `longest` tokens: the first passage of every row, in row
// order and alternating between files, then the second passages, and so on. Uses the files, text,
// model and chat of `options`. Throws like LoadData, and InputError if there is no prompt.
PromptSet LoadPrompts(const DataOptions& options, const LazyTokenizer& tokenizer,
                      int64_t vocab_size, int64_t most, int64_t longest);

}  // namespace oscar
