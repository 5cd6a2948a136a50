// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// SentencePiece's tokenizer.model, a Protocol Buffers message (sentencepiece_model.proto,
// ModelProto), and the pipeline for such a vocabulary.
#pragma once

#include <string>
#include <string_view>

#include "capture/text/tokenizer/sentencepiece_vocabulary.h"
#include "capture/text/tokenizer/tokenizer_json.h"

namespace oscar {

// Throws InputError naming `where` and the byte if the bytes are not such a message, or if the
// model is neither BPE nor Unigram.
SentencePieceVocabulary ParseSentencePieceModel(std::string_view bytes, const std::string& where);

// Settings for special tokens and the text between them (chunks), which SentencePiece itself lacks.
struct SentencePieceOptions {
  Json extra;            // extra tokens as for AddedTokens; an "id" renames that piece
  bool legacy = true;    // each chunk gets the dummy prefix, not only the first
  std::string bos, eos;  // added around a text; empty: none
};
TokenizerPipeline MakeSentencePiecePipeline(SentencePieceVocabulary vocabulary,
                                            const SentencePieceOptions& options,
                                            const std::string& where);

}  // namespace oscar
