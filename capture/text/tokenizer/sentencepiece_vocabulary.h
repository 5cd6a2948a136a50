// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The content of a SentencePiece model (Kudo and Richardson 2018, arXiv 1808.06226), from a
// tokenizer.model or the keys of a GGUF.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace oscar {

struct SentencePieceVocabulary {
  // The values of ModelProto.SentencePiece.Type, and of tokenizer.ggml.token_type.
  enum class Type {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,      // only has a meaning where a program inserts it
    kUserDefined = 4,  // never split or merged
    kUnused = 5,
    kByte = 6,
  };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::kNormal;
  };
  std::vector<Piece> pieces;  // [num_tokens], by id
  bool unigram = false;       // false: byte-pair encoding
  bool byte_fallback = false;

  // How a text is normalized: NormalizerSpec and TrainerSpec.treat_whitespace_as_suffix.
  std::string charsmap;  // see charsmap.h; empty: none
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool whitespace_as_suffix = false;
};

}  // namespace oscar
