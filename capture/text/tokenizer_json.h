// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The layout of tokenizer.json: which member becomes which part of the pipeline.
#pragma once

#include "capture/files/mapped_file.h"
#include "capture/text/added_tokens.h"
#include "capture/text/bpe.h"
#include "capture/text/decoder.h"
#include "capture/text/normalizer.h"
#include "capture/text/post_processor.h"
#include "capture/text/pre_tokenizer.h"

namespace oscar {

// In the order of encoding; the decoder works backwards.
struct TokenizerPipeline {
  Chain<Normalizer> normalizers;
  Chain<PreTokenizer> pre_tokenizers;
  BpeModel model;
  AddedTokens added_tokens;
  Chain<PostProcessor> post_processors;
  Chain<Decoder> decoders;
};

TokenizerPipeline LoadTokenizerPipeline(const MappedFile& tokenizer_json);

}  // namespace oscar
