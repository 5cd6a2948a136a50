// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks encodings and decodings against files made with Hugging Face tokenizers, with one JSON
// object per line. The texts contain NUL and U+2028, so only \n ends a line.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capture/text/tokenizer/tokenizer.h"

namespace oscar {

struct CaseCount {
  int total = 0;
  std::vector<std::string> failures;  // one description per failure
};

// Reads cases.jsonl, whose rows are text, add_special_tokens -> ids.
CaseCount CheckEncodings(const Tokenizer& tokenizer, const std::filesystem::path& file);
// Reads decode.jsonl, whose rows are ids, skip_special_tokens -> text.
CaseCount CheckDecodings(const Tokenizer& tokenizer, const std::filesystem::path& file);

}  // namespace oscar
