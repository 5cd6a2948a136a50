// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Beginnings for a model to continue in its own words, out of the same data that it is calibrated
// on. A chat gives one: its messages up to the last that is not the assistant's, and the template's
// beginning of an answer. Any other text gives one for each passage of it: its first tokens, in a
// model with a chat template as the user's message, else as they are. A passage is cut in
// tokens and may begin inside a character; of texts such ends are left out.
#pragma once

#include <cstdint>
#include <vector>

#include "capture/text/data_source.h"

namespace oscar {

// Tokens of a passage of text, and from the beginning of one to that of the next.
inline constexpr int64_t kPassageTokens = 96, kPassageStride = 512;

struct PromptSet {
  std::vector<Document> prompts;  // origin "self:prompts.jsonl:12", of a later passage "...#2"
  std::string chat_format;        // as in DataSet
  Json chat_template;
  int64_t too_long = 0;  // prompts that were left out because they exceed `longest`
};

// At most `most` prompts of at most `longest` tokens: every row's first, in the order of the rows
// and of the files by turns, then the rows' second passages, and so on. Of `options`, files, text,
// model and chat count. Throws as LoadData, and InputError where there is no prompt at all.
PromptSet LoadPrompts(const DataOptions& options, const LazyTokenizer& tokenizer,
                      int64_t vocab_size, int64_t most, int64_t longest);

}  // namespace oscar
