// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The tokens that end a model's output. Releases name them in up to three files, and
// instruction-tuned models end a turn with another token than a text. All of them are collected
// here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "capture/text/tokenizer/tokenizer.h"

namespace oscar {

// Returns ids ascending, possibly none: eos_token_id (one or a list) of generation_config.json and
// of config.json, text_config included, and eos_token of tokenizer_config.json, if `tokenizer` is
// not null. Ids outside [0, vocab_size) are not tokens and are dropped. Throws InputError naming
// file and member if it is neither an integer nor a list of them.
std::vector<int32_t> StopTokens(const std::filesystem::path& model_directory,
                                const Tokenizer* tokenizer, int64_t vocab_size);

}  // namespace oscar
