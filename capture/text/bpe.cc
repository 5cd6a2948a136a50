// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Loading and look-up; the merging itself is in bpe_merge.cc.
#include "capture/text/bpe.h"

#include <fmt/format.h>

#include <limits>
#include <span>
#include <utility>

#include "capture/files/quote.h"
#include "capture/files/utf8.h"
#include "capture/text/byte_alphabet.h"
#include "capture/text/component_table.h"
#include "linalg/error.h"

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

void CheckModel(const Json& model, const std::string& where) {
  if (!model.is_object()) throw InputError(where + ": expected an object");
  const std::string type = JsonString(model, "type", "BPE", where);
  if (type != "BPE") {
    throw InputError(fmt::format(
        "{}: type {} is not supported; supported: BPE. Give rows with \"input_ids\" to calibrate "
        "without this tokenizer",
        where, Quoted(type)));
  }
  CheckFields(model, kModelFields, where);
  if (JsonDouble(model, "dropout", 0.0, where) != 0.0) {
    throw InputError(where + ": dropout is not supported: encoding would be random");
  }
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const std::string value = JsonString(model, affix, "", where);
    if (!value.empty()) {
      throw InputError(
          fmt::format("{}: {} {} is not supported; supported: none", where, affix, Quoted(value)));
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

// One merge: "left right" in old files, ["left", "right"] in new ones.
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
  if (!unknown.empty() && symbols == Symbols::kCharacters) {
    unknown_ = TokenId(unknown);
    if (!unknown_) {
      throw InputError(
          fmt::format("{}: unk_token {} is not in the vocabulary", where, Quoted(unknown)));
    }
  }
  CheckCoverage(where + ".vocab");
  LoadMerges(JsonMember(model, "merges", where), where + ".merges");
}

void BpeModel::LoadVocabulary(const Json& vocabulary, const std::string& where) {
  if (!vocabulary.is_object()) throw InputError(where + ": expected an object of token: id");
  byte_ids_.fill(-1);
  ids_.reserve(vocabulary.size());
  tokens_.reserve(vocabulary.size());
  for (const auto& [token, value] : vocabulary.items()) {
    const int32_t id = CheckedId(value, token, where);
    const auto [other, is_new] = tokens_.emplace(id, token);
    if (!is_new) {
      throw InputError(fmt::format("{}: id {} is given to both {} and {}", where, id,
                                   Quoted(other->second), Quoted(token)));
    }
    ids_.emplace(token, id);
    max_id_ = std::max(max_id_, id);
    if (symbols_ == Symbols::kCharacters) {
      if (ignore_merges_) whole_pieces_.emplace(token, id);
      continue;
    }
    const std::optional<std::string> bytes = AlphabetToBytes(token);
    if (!bytes) continue;  // special tokens: no piece can spell them
    if (bytes->size() == 1) byte_ids_[static_cast<uint8_t>(bytes->front())] = id;
    if (ignore_merges_) whole_pieces_.emplace(*bytes, id);
  }
  if (symbols_ != Symbols::kCharacters || !byte_fallback_) return;
  for (size_t byte = 0; byte < 256; ++byte)
    byte_ids_[byte] = TokenId(fmt::format("<0x{:02X}>", byte)).value_or(-1);
}

void BpeModel::CheckCoverage(const std::string& where) const {
  for (size_t byte = 0; byte < 256 && !unknown_; ++byte) {
    if (byte_ids_[byte] >= 0) continue;
    if (symbols_ == Symbols::kCharacters) {
      throw InputError(fmt::format(
          "{}: there is neither an unk_token nor byte_fallback with all tokens <0x00> to <0xFF>; "
          "characters without a token would be lost",
          where));
    }
    std::string character;
    AppendUtf8(ByteToAlphabet(static_cast<uint8_t>(byte)), character);
    throw InputError(fmt::format(
        "{}: byte {:#04x} (written \"{}\") has no token; a byte-level vocabulary needs all 256, or "
        "text would be lost",
        where, byte, character));
  }
}

void BpeModel::LoadMerges(const Json& merges, const std::string& where) {
  if (!merges.is_array()) throw InputError(where + ": expected an array");
  merges_ = MergeTable(merges.size());
  const auto id_of = [&](const std::string& token, uint32_t rank) {
    const auto found = ids_.find(token);
    if (found != ids_.end()) return found->second;
    throw InputError(
        fmt::format("{}[{}]: {} is not in the vocabulary", where, rank, Quoted(token)));
  };
  uint32_t rank = 0;
  for (const Json& merge : merges) {
    // Old files may carry the first line of merges.txt.
    if (merge.is_string() && merge.get_ref<const std::string&>().starts_with("#version")) continue;
    const auto [left, right] = ParseMerge(merge, rank, where);
    const int32_t left_id = id_of(left, rank);
    const int32_t right_id = id_of(right, rank);
    merges_.Put(left_id, right_id, {rank, id_of(left + right, rank)});
    ++rank;
  }
}

std::optional<int32_t> BpeModel::TokenId(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const std::string* BpeModel::Token(int32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

}  // namespace oscar
