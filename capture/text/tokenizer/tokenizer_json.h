// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The layout of tokenizer.json: maps members to parts of the pipeline.
#pragma once

#include "capture/files/mapped_file.h"
#include "capture/text/tokenizer/added_tokens.h"
#include "capture/text/tokenizer/decoder.h"
#include "capture/text/tokenizer/normalizer.h"
#include "capture/text/tokenizer/post_processor.h"
#include "capture/text/tokenizer/pre_tokenizer.h"
#include "capture/text/tokenizer/token_model.h"

namespace oscar {

// Parts in the order of encoding. The decoder converts back.
struct TokenizerPipeline {
  Chain<Normalizer> normalizers;
  Chain<PreTokenizer> pre_tokenizers;
  std::unique_ptr<const TokenModel> model;
  AddedTokens added_tokens;
  Chain<PostProcessor> post_processors;
  Chain<Decoder> decoders;
};

// `file` is the path in errors. `extra`: tokens of other files, as for AddedTokens.
TokenizerPipeline MakeTokenizerPipeline(const Json& root, const Json& extra,
                                        const std::string& file);
// Throws InputError naming `where` if an inserted id has no token.
void CheckInsertedIds(const TokenizerPipeline& pipeline, const std::string& where);

}  // namespace oscar
