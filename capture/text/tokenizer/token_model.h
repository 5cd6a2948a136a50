// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The "model" of a tokenizer: converts one piece of normalized text to token ids. Byte-pair
// encoding (bpe.h) and Unigram (unigram.h) are the two kinds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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

// Finds the strings of a set in a text (a trie over bytes).
class TokenMatcher {
 public:
  void Insert(std::string_view content, size_t index);  // the first of equal strings wins
  bool empty() const { return edges_.empty(); }

  struct Match {
    size_t begin, end;  // bytes
    size_t index;
  };
  // Calls `use` with each string that begins at `begin`, shorter strings first.
  template <class Use>
  void ForEachAt(std::string_view text, size_t begin, const Use& use) const {
    uint32_t node = 0;
    for (size_t i = begin; i < text.size(); ++i) {
      const auto edge = edges_.find(Edge(node, text[i]));
      if (edge == edges_.end()) return;
      node = edge->second;
      if (ends_here_[node] != kNoToken) use(Match{begin, i + 1, ends_here_[node]});
    }
  }
  // Returns the longest string that begins at `begin`.
  std::optional<Match> FindAt(std::string_view text, size_t begin) const;
  // Returns the leftmost match at or after `from`, and the longest one there.
  std::optional<Match> Find(std::string_view text, size_t from) const;

 private:
  static uint64_t Edge(uint32_t node, char byte) {
    return uint64_t{node} << 8 | static_cast<uint8_t>(byte);
  }
  static constexpr size_t kNoToken = static_cast<size_t>(-1);
  std::unordered_map<uint64_t, uint32_t> edges_;  // node, byte -> node; the root is node 0
  std::vector<size_t> ends_here_ = {kNoToken};    // [num_nodes] index of the token that ends there
};

class TokenModel {
 public:
  // The symbols in a piece. kBytes: the vocabulary is written in the byte alphabet.
  enum class Symbols { kBytes, kCharacters };

  // Reads the member "model" of tokenizer.json. Throws InputError naming `where` for an unsupported
  // type or field, ids outside [0, 2^31), and an id that two tokens share.
  static std::unique_ptr<const TokenModel> Make(const Json& model, Symbols symbols,
                                                const std::string& where);
  virtual ~TokenModel() = default;

  // The tokens of pieces seen before. Only one caller of Encode() may use it at a time.
  struct Cache {
    struct Range {
      uint32_t begin, end;  // range in `ids`
      uint32_t lost;
    };
    StringMap<Range> ranges;
    std::vector<int32_t> ids;
    // Number of bytes (kBytes) or characters without a token, which were omitted so far.
    int64_t lost = 0;
  };
  // Appends the tokens of one piece.
  void Encode(std::string_view piece, Cache& cache, std::vector<int32_t>& ids) const;

  // `token` is in the byte alphabet if the symbols are bytes.
  std::optional<int32_t> TokenId(std::string_view token) const;
  const std::string* Token(int32_t id) const;  // null: no such id
  int32_t max_id() const { return max_id_; }

 protected:
  // Throws InputError if the id already has a token. The first of equal tokens keeps its id.
  void AddToken(std::string token, int32_t id, const std::string& where);
  // Returns the ids of <0x00> to <0xFF>; -1 for missing ones.
  std::vector<int32_t> ByteTokens() const;

 private:
  // Appends the tokens of a piece that is not in the cache. Returns how many symbols were lost.
  virtual uint32_t EncodeNew(std::string_view piece, std::vector<int32_t>& ids) const = 0;

  StringMap<int32_t> ids_;                           // token as written in the file -> id
  std::unordered_map<int32_t, std::string> tokens_;  // id -> token as written in the file
  int32_t max_id_ = -1;
};

}  // namespace oscar
