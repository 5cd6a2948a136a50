// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Beginnings for a model to continue in its own words, from the calibration data. A chat gives one:
// its messages up to the last that is not the assistant's, and the template's beginning of an
// answer. Any other text gives one per passage: its first tokens, as the user's message if the
// model has a chat template, else as they are. Passages are cut at tokens and may begin inside a
// character; such ends are removed from texts.
#pragma once

#include <cstdint>
#include <vector>

#include "capture/text/data/data_source.h"

namespace oscar {

// Tokens of a passage of text, and the distance from the beginning of one to the next.
inline constexpr int64_t kPassageTokens = 96, kPassageStride = 512;

struct PromptSet {
  std::vector<Document> prompts;  // origin "self:prompts.jsonl:12"; later passages "...#2"
  std::string chat_format;        // as in DataSet
  Json chat_template;
  int64_t too_long = 0;  // prompts omitted because they exceed `longest`
};

// Loads at most `most` prompts of at most `longest` tokens: the first of every row, in the order of
// rows and with files alternating, then the rows' second passages, and so on. Uses the files, text,
// model and chat of `options`. Throws as LoadData, and InputError if there is no prompt at all.
PromptSet LoadPrompts(const DataOptions& options, const LazyTokenizer& tokenizer,
                      int64_t vocab_size, int64_t most, int64_t longest);

}  // namespace oscar
