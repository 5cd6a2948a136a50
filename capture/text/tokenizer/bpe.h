// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The "model" of tokenizer.json: byte-pair encoding (Sennrich et al. 2016), over bytes as in GPT-2
// or over characters as in SentencePiece. A character without a token becomes the tokens of its
// bytes ("<0xE2>") or the unknown token. Trap: several merges may give the same token. A queued
// merge is stale if its symbols no longer merge to the same token; a changed pair that merges to
// that token is accepted (as Hugging Face tokenizers does).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/files/strict_json.h"
#include "capture/text/tokenizer/sentencepiece_vocabulary.h"
#include "capture/text/tokenizer/token_model.h"

namespace oscar {

// (left id, right id) -> rank and id of the merged token. It uses open addressing, because a
// look-up per pair of neighbours makes it the hottest table of encoding.
class MergeTable {
 public:
  struct Merge {
    uint32_t rank;
    int32_t token;
  };
  explicit MergeTable(size_t num_merges);
  void Put(int32_t left, int32_t right, Merge merge);  // the latest rank of a pair wins
  const Merge* Find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t pair;  // left << 32 | right; kEmpty: free
    Merge merge;
  };
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  size_t SlotOf(uint64_t pair) const;
  std::vector<Slot> slots_;  // size is a power of two
};

class BpeModel : public TokenModel {
 public:
  // Throws InputError naming `where` like TokenModel::Make(), and for merges of unknown tokens.
  BpeModel(const Json& model, Symbols symbols, const std::string& where);
  // Uses SentencePiece's rule: two neighbours can be merged if their joined text is a normal piece.
  // The merge with the best score comes first; if scores are equal, the leftmost one.
  BpeModel(const SentencePieceVocabulary& vocabulary, const std::string& where);

 private:
  void LoadVocabulary(const Json& vocabulary, const std::string& where);
  void LoadMerges(const Json& merges, const std::string& where);
  uint32_t Bytes(std::string_view piece, std::vector<int32_t>& symbols) const;
  uint32_t Characters(std::string_view piece, std::vector<int32_t>& symbols) const;
  uint32_t EncodeNew(std::string_view piece, std::vector<int32_t>& ids) const override;

  Symbols symbols_;
  StringMap<int32_t> whole_pieces_;      // token as written in pieces -> id; for ignore_merges
  TokenMatcher user_defined_;            // SentencePiece's user-defined pieces; index: id
  std::array<int32_t, 256> byte_ids_{};  // ids of single bytes or of <0x00> to <0xFF>; -1: none
  MergeTable merges_{0};
  std::optional<int32_t> unknown_;  // used for text without a token
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;  // joins neighbours without a token into one unknown token
  bool ignore_merges_ = false;
};

}  // namespace oscar
