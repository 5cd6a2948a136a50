// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The "model" of tokenizer.json: byte-pair encoding (Sennrich et al. 2016), over bytes as in GPT-2
// or over characters as in SentencePiece, where a character without a token becomes the tokens of
// its bytes ("<0xE2>") or the unknown token. Trap: several merges may build the same token, and the
// queue compares the token built, not the pair, when it decides whether an entry is stale (as
// Hugging Face tokenizers does).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <class Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

// (left id, right id) -> rank and id of the merged token. Open addressing: one look-up per pair of
// neighbours makes this the hottest table of encoding.
class MergeTable {
 public:
  struct Merge {
    uint32_t rank;
    int32_t token;
  };
  explicit MergeTable(size_t num_merges);
  void Put(int32_t left, int32_t right, Merge merge);  // a later rank of the same pair wins
  const Merge* Find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t pair;  // left << 32 | right; kEmpty: free
    Merge merge;
  };
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  size_t SlotOf(uint64_t pair) const;
  std::vector<Slot> slots_;  // a power of two
};

class BpeModel {
 public:
  // What merging begins with. kBytes: the vocabulary is written in the byte alphabet.
  enum class Symbols { kBytes, kCharacters };

  // Throws InputError naming `where` for what is not BPE, ids outside [0, 2^31), an id given to two
  // tokens, merges of unknown tokens, and where text could be lost: a byte without a token
  // (kBytes), neither all bytes nor an unknown token (kCharacters).
  BpeModel(const Json& model, Symbols symbols, const std::string& where);

  // Tokens of whole words seen before, for one caller of Encode() at a time.
  struct WordCache {
    StringMap<std::pair<uint32_t, uint32_t>> ranges;  // word -> [begin, end) of `ids`
    std::vector<int32_t> ids;
  };
  // Appends the tokens of one piece.
  void Encode(std::string_view piece, WordCache& cache, std::vector<int32_t>& ids) const;

  // In the byte alphabet, if the symbols are bytes.
  std::optional<int32_t> TokenId(std::string_view token) const;
  const std::string* Token(int32_t id) const;  // null: no such id
  int32_t max_id() const { return max_id_; }

 private:
  void LoadVocabulary(const Json& vocabulary, const std::string& where);
  void LoadMerges(const Json& merges, const std::string& where);
  void CheckCoverage(const std::string& where) const;
  std::vector<int32_t> Characters(std::string_view piece) const;
  void Merge(std::string_view piece, std::vector<int32_t>& ids) const;

  Symbols symbols_;
  StringMap<int32_t> ids_;                           // token as the file has it -> id
  StringMap<int32_t> whole_pieces_;                  // token as pieces have it -> id: ignore_merges
  std::unordered_map<int32_t, std::string> tokens_;  // id -> token as the file has it
  std::array<int32_t, 256> byte_ids_{};  // of single bytes, or of <0x00> to <0xFF>; or -1
  MergeTable merges_{0};
  std::optional<int32_t> unknown_;  // kCharacters: for what has no token
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;  // neighbours without a token become one unknown token
  bool ignore_merges_ = false;
  int32_t max_id_ = -1;
};

}  // namespace oscar
