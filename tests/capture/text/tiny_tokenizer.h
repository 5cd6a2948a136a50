// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A tokenizer.json that is small enough to work out results by hand. Each test changes it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "capture/text/tokenizer/tokenizer.h"

namespace oscar {

// Returns the tokenizer.json. The 256 byte characters have the ids 0..255 of their bytes, followed
// by ab=256 (rank 0), abc=257 (rank 1), bc=258 (rank 2), " a"=259 (rank 3), and the special added
// tokens <|im_start|>=260 and <|im_end|>=261. The pre-tokenizer is ByteLevel without a pattern, so
// a text is one piece.
nlohmann::json TinyTokenizerJson();

// Writes `json` as tokenizer.json into the scratch directory `name` and loads it.
Tokenizer LoadTokenizer(const nlohmann::json& json, const std::string& name);

nlohmann::json AddedTokenJson(int id, const std::string& content);

}  // namespace oscar
