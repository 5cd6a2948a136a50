// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The Unigram model (Kudo 2018, arXiv 1804.10959): splits a piece into the tokens with the largest
// sum of scores (log probabilities). Neighbouring characters without a token become the tokens of
// their bytes or one unknown token.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/text/tokenizer/sentencepiece_vocabulary.h"
#include "capture/text/tokenizer/token_model.h"

namespace oscar {

class UnigramModel : public TokenModel {
 public:
  // Throws InputError like TokenModel::Make().
  UnigramModel(const Json& model, Symbols symbols, const std::string& where);
  // Uses SentencePiece's own arithmetic: sums in float32, and user-defined pieces always win.
  UnigramModel(const SentencePieceVocabulary& vocabulary, const std::string& where);

 private:
  uint32_t EncodeNew(std::string_view piece, std::vector<int32_t>& ids) const override;

  TokenMatcher pieces_;         // index: id
  std::vector<double> scores_;  // [num_tokens], by id
  double unknown_score_ = 0;
  std::optional<int32_t> unknown_;
  std::vector<int32_t> byte_ids_;  // [256], or empty: no byte fallback
  bool float32_sums_ = false;
};

}  // namespace oscar
