// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Collects the tokens that end a model's output. A release names them in up to three files. All are
// needed, because instruction-tuned models end a turn with another token than a text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "capture/text/tokenizer/tokenizer.h"

namespace oscar {

// Returns ascending ids, possibly none: eos_token_id (one or a list) of generation_config.json and
// config.json (including text_config), and eos_token of tokenizer_config.json if `tokenizer` is not
// null. Drops ids outside [0, vocab_size). Throws InputError naming file and member if eos_token_id
// is neither an integer nor a list of integers.
std::vector<int32_t> StopTokens(const std::filesystem::path& model_directory,
                                const Tokenizer* tokenizer, int64_t vocab_size);

}  // namespace oscar
