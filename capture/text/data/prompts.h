// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Turns calibration data into prompts, which a model then continues in its own words. A chat gives
// one prompt: trailing assistant messages are dropped, and the template adds the beginning of an
// answer. A text is cut into passages. If the model has a chat template, each passage becomes a
// user message; otherwise it is encoded as it is. A row of token ids is cut in the same way and
// never becomes a message. Passages are cut between tokens, so they may begin or end inside a
// character; broken characters at the ends of a text are removed.
#pragma once

#include <cstdint>
#include <vector>

#include "capture/text/data/data_source.h"

namespace oscar {

// A passage is the first kPassageTokens of every kPassageStride tokens of a text.
inline constexpr int64_t kPassageTokens = 96, kPassageStride = 512;

struct PromptSet {
  std::vector<Document> prompts;  // origin "self:prompts.jsonl:12"; later passages "...#2"
  std::string chat_format;        // like DataSet::chat_format
  Json chat_template;
  int64_t too_long = 0;  // prompts omitted because they exceed `longest`
};

// Loads at most `most` prompts of at most `longest` tokens. The first passages of all rows come
// before the second passages, and so on; rows are in order and alternate between files. Uses the
// files, built-in corpus, model directory and chat options of `options`. Throws like LoadData, and
// InputError if there is no prompt.
PromptSet LoadPrompts(const DataOptions& options, const LazyTokenizer& tokenizer,
                      int64_t vocab_size, int64_t most, int64_t longest);

}  // namespace oscar
