// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The tokenizer in the keys tokenizer.* of a GGUF (ggml, docs/gguf.md). The file contains only the
// name of its pre-tokenizer; gguf_tokenizer.cc has the patterns for these names.
#pragma once

#include "capture/checkpoint/gguf_file.h"
#include "capture/text/tokenizer/tokenizer_json.h"

namespace oscar {

// Throws InputError naming the file, the key and the supported values if tokenizer.ggml.model or
// tokenizer.ggml.pre is not in the table.
TokenizerPipeline MakeGgufPipeline(const GgufFile& gguf);

// Returns the equivalent of tokenizer_config.json: "chat_template" (a string, or a list as
// ChatFormat::Find() reads it), "bos_token", "eos_token" and so on.
Json GgufTokenizerConfig(const GgufFile& gguf);

}  // namespace oscar
