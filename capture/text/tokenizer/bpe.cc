// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Loads the model and looks up tokens; bpe_merge.cc merges.
#include "capture/text/tokenizer/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <span>
#include <utility>

#include "capture/files/quote.h"
#include "capture/text/tokenizer/byte_alphabet.h"
#include "capture/text/tokenizer/component_table.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr std::string_view kModelFields[] = {
    "dropout",
    "unk_token",
    "continuing_subword_prefix",
    "end_of_word_suffix",
    "fuse_unk",
    "vocab",
    "byte_fallback",
    "ignore_merges",
    "merges",
};

constexpr size_t kMaxPieceBytes = 1024;  // limits the search for merges; real tokens are below 100

void CheckModel(const Json& model, const std::string& where) {
  CheckFields(model, kModelFields, where);
  if (JsonDouble(model, "dropout", 0.0, where) != 0.0) {
    throw InputError(where + ": dropout is not supported: encoding would be random");
  }
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const std::string value = JsonString(model, affix, "", where);
    if (!value.empty()) {
      throw InputError(
          fmt::format("{}: {} {} is not supported; expected none", where, affix, Quoted(value)));
    }
  }
}

int32_t CheckedId(const Json& value, std::string_view token, const std::string& where) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int32_t>::max()) ||
      value.get<int64_t>() < 0) {
    throw InputError(fmt::format("{}: token {} has id {}; expected an integer in [0, 2^31)", where,
                                 Quoted(token), Escaped(value.dump())));
  }
  return value.get<int32_t>();
}

// Parses one merge: "left right" in old files, ["left", "right"] in new ones.
std::pair<std::string, std::string> ParseMerge(const Json& merge, size_t rank,
                                               const std::string& where) {
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return {text.substr(0, space), text.substr(space + 1)};
    }
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
             merge[1].is_string()) {
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  throw InputError(fmt::format("{}[{}]: expected \"left right\" or [\"left\", \"right\"], found {}",
                               where, rank, Escaped(merge.dump())));
}

}  // namespace

BpeModel::BpeModel(const Json& model, Symbols symbols, const std::string& where)
    : symbols_(symbols) {
  CheckModel(model, where);
  ignore_merges_ = JsonBool(model, "ignore_merges", false, where);
  byte_fallback_ = JsonBool(model, "byte_fallback", false, where);
  fuse_unknown_ = JsonBool(model, "fuse_unk", false, where);
  LoadVocabulary(JsonMember(model, "vocab", where), where + ".vocab");
  const std::string unknown = JsonString(model, "unk_token", "", where);
  if (!unknown.empty()) unknown_ = TokenId(unknown);
  if (!unknown.empty() && !unknown_ && symbols == Symbols::kCharacters) {
    throw InputError(
        fmt::format("{}: unk_token {} is not in the vocabulary", where, Quoted(unknown)));
  }
  LoadMerges(JsonMember(model, "merges", where), where + ".merges");
}

BpeModel::BpeModel(const SentencePieceVocabulary& vocabulary, const std::string& where)
    : symbols_(Symbols::kCharacters),
      byte_fallback_(vocabulary.byte_fallback),
      fuse_unknown_(true) {
  using Type = SentencePieceVocabulary::Type;
  std::vector<float> scores;  // scores of normal pieces, without duplicates, best first
  StringMap<int32_t> normal;
  for (size_t i = 0; i < vocabulary.pieces.size(); ++i) {
    const auto& [text, score, type] = vocabulary.pieces[i];
    const auto id = static_cast<int32_t>(i);
    AddToken(text, id, where);
    if (text.size() > kMaxPieceBytes) {
      throw InputError(fmt::format("{}: piece {} has {} bytes; expected at most {}", where, id,
                                   text.size(), kMaxPieceBytes));
    }
    if (type == Type::kUnknown) unknown_ = id;
    if (type == Type::kUserDefined && !text.empty()) user_defined_.Insert(text, i);
    if (type == Type::kNormal && normal.emplace(text, id).second) scores.push_back(score);
  }
  byte_ids_.fill(-1);
  if (byte_fallback_) std::ranges::copy(ByteTokens(), byte_ids_.begin());
  std::ranges::sort(scores, std::greater<>());
  const auto repeated = std::ranges::unique(scores);
  scores.erase(repeated.begin(), repeated.end());

  struct Pair {
    int32_t left, right;
    MergeTable::Merge merge;
  };
  std::vector<Pair> pairs;
  for (const auto& [text, id] : normal) {
    const float score = vocabulary.pieces[static_cast<size_t>(id)].score;
    const auto rank = static_cast<uint32_t>(
        std::ranges::lower_bound(scores, score, std::greater<>()) - scores.begin());
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const auto left = normal.find(std::string_view(text).substr(0, cut));
      if (left == normal.end()) continue;
      const auto right = normal.find(std::string_view(text).substr(cut));
      if (right != normal.end()) pairs.push_back({left->second, right->second, {rank, id}});
    }
  }
  merges_ = MergeTable(pairs.size());
  for (const Pair& pair : pairs) merges_.Put(pair.left, pair.right, pair.merge);
}

void BpeModel::LoadVocabulary(const Json& vocabulary, const std::string& where) {
  if (!vocabulary.is_object()) throw InputError(where + ": expected an object of token: id");
  byte_ids_.fill(-1);
  for (const auto& [token, value] : vocabulary.items()) {
    const int32_t id = CheckedId(value, token, where);
    AddToken(token, id, where);
    if (symbols_ == Symbols::kCharacters) {
      if (ignore_merges_) whole_pieces_.emplace(token, id);
      continue;
    }
    const std::optional<std::string> bytes = AlphabetToBytes(token);
    if (!bytes) continue;  // skips special tokens, which no piece can spell
    if (bytes->size() == 1) byte_ids_[static_cast<uint8_t>(bytes->front())] = id;
    if (ignore_merges_) whole_pieces_.emplace(*bytes, id);
  }
  if (symbols_ == Symbols::kCharacters && byte_fallback_)
    std::ranges::copy(ByteTokens(), byte_ids_.begin());
}

void BpeModel::LoadMerges(const Json& merges, const std::string& where) {
  if (!merges.is_array()) throw InputError(where + ": expected an array");
  merges_ = MergeTable(merges.size());
  const auto id_of = [&](const std::string& token, uint32_t rank) {
    if (const auto id = TokenId(token)) return *id;
    throw InputError(
        fmt::format("{}[{}]: {} is not in the vocabulary", where, rank, Quoted(token)));
  };
  uint32_t rank = 0;
  for (const Json& merge : merges) {
    // Old files may contain the first line of merges.txt.
    if (merge.is_string() && merge.get_ref<const std::string&>().starts_with("#version")) continue;
    const auto [left, right] = ParseMerge(merge, rank, where);
    const int32_t left_id = id_of(left, rank);
    const int32_t right_id = id_of(right, rank);
    merges_.Put(left_id, right_id, {rank, id_of(left + right, rank)});
    ++rank;
  }
}

}  // namespace oscar
