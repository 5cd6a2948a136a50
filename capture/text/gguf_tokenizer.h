// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The tokenizer that the keys tokenizer.* of a GGUF describe (ggml, docs/gguf.md). The file names
// its pre-tokenizer; what the names mean is a table here.
#pragma once

#include "capture/checkpoint/gguf_file.h"
#include "capture/text/tokenizer_json.h"

namespace oscar {

// Throws InputError naming the file and the key for a tokenizer.ggml.model or tokenizer.ggml.pre
// that is not in the table, with the list of those that are.
TokenizerPipeline MakeGgufPipeline(const GgufFile& gguf);

// What tokenizer_config.json would say: "chat_template" (a string, or a list as
// ChatFormat::Find() reads it), "bos_token", "eos_token" and so on.
Json GgufTokenizerConfig(const GgufFile& gguf);

}  // namespace oscar
