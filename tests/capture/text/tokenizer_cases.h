// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Expected encodings and decodings, made with Hugging Face tokenizers: one JSON object per line.
// The texts contain NUL and U+2028, so lines end at \n only.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capture/text/tokenizer/tokenizer.h"

namespace oscar {

struct CaseCount {
  int total = 0;
  std::vector<std::string> failures;  // one description each
};

// cases.jsonl: text, add_special_tokens -> ids.
CaseCount CheckEncodings(const Tokenizer& tokenizer, const std::filesystem::path& file);
// decode.jsonl: ids, skip_special_tokens -> text.
CaseCount CheckDecodings(const Tokenizer& tokenizer, const std::filesystem::path& file);

}  // namespace oscar
