// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "capture/files/quote.h"
#include "capture/files/utf8.h"
#include "capture/text/tokenizer/regex_dialect.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr std::string_view kFields[] = {"id",     "content", "single_word", "lstrip",
                                        "rstrip", "special", "normalized"};
constexpr size_t kMaxContentBytes = 1024;  // limits the search time; real tokens are below 100

AddedToken ParseAddedToken(const Json& entry, const std::string& where) {
  AddedToken token;
  token.content = JsonString(entry, "content", where);
  token.special = JsonBool(entry, "special", false, where);
  token.normalized = JsonBool(entry, "normalized", !token.special, where);
  token.lstrip = JsonBool(entry, "lstrip", false, where);
  token.rstrip = JsonBool(entry, "rstrip", false, where);
  token.single_word = JsonBool(entry, "single_word", false, where);
  return token;
}

// Returns the first byte of the white space that ends at `end`.
size_t SpaceBefore(std::string_view text, size_t end) {
  while (end > 0) {
    size_t begin = end - 1;
    while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
    size_t position = begin;
    if (!IsWhiteSpace(NextCodePoint(text, position))) break;
    end = begin;
  }
  return end;
}

// Returns the position after the white space that starts at `begin`.
size_t SpaceBehind(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    size_t position = begin;
    if (!IsWhiteSpace(NextCodePoint(text, position))) break;
    begin = position;
  }
  return begin;
}

// Whether the character before or after `position` belongs to a word.
bool TouchesWord(std::string_view text, size_t position, bool behind, RegexMatcher& word) {
  if (position == (behind ? text.size() : 0)) return false;
  size_t begin = position;
  size_t end = position;
  if (behind) {
    NextCodePoint(text, end);
  } else {
    do {
      --begin;
    } while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80);
  }
  word.Reset(text.substr(begin, end - begin));
  return word.Next(begin, end);
}

}  // namespace

AddedTokens::AddedTokens(const Json& list, const Json& extra, const TokenModel& model,
                         const Chain<Normalizer>& normalizers, const std::string& where)
    : word_character_(kRustWordCharacter, Regex::Syntax::kPcre2, where) {
  if (!list.is_null() && !list.is_array()) throw InputError(where + ": expected an array");
  for (size_t i = 0; i < list.size(); ++i) Add(list[i], model, fmt::format("{}[{}]", where, i));
  for (const Json& entry : extra) AddExtra(entry, model, where);
  for (AddedToken& token : tokens_) {
    token.decoded = token.normalized ? Normalize(normalizers, token.content) : token.content;
  }
  // If normalization makes contents equal, a special token wins, otherwise the first one.
  for (const bool special : {true, false}) {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const AddedToken& token = tokens_[i];
      if (token.special != special) continue;
      if (token.normalized) {
        normalized_.Insert(token.decoded, i);
      } else {
        raw_.Insert(token.content, i);
      }
    }
  }
}

void AddedTokens::Add(const Json& entry, const TokenModel& model, const std::string& where) {
  if (!entry.is_object()) throw InputError(where + ": expected an object");
  CheckFields(entry, kFields, where);
  AddedToken token = ParseAddedToken(entry, where);
  const int64_t id = JsonInt(entry, "id", where);
  if (id < 0 || id > std::numeric_limits<int32_t>::max()) {
    throw InputError(fmt::format("{}: token {} has id {}; expected an integer in [0, 2^31)", where,
                                 Quoted(token.content), id));
  }
  token.id = static_cast<int32_t>(id);
  if (token.content.empty()) return;  // it would match nothing
  const std::string* in_model = model.Token(token.id);
  const std::optional<int32_t> model_id = model.TokenId(token.content);
  if ((in_model != nullptr && *in_model != token.content) || (model_id && *model_id != token.id)) {
    throw InputError(fmt::format(
        "{}: token {} has id {}, but the vocabulary says {}", where, Quoted(token.content),
        token.id, in_model != nullptr ? Quoted(*in_model) : std::to_string(*model_id)));
  }
  if (const AddedToken* other = Find(token.id)) {
    throw InputError(fmt::format("{}: id {} is given to both {} and {}", where, token.id,
                                 Quoted(other->content), Quoted(token.content)));
  }
  if (Find(token.content) != nullptr)
    throw InputError(fmt::format("{}: {} is added twice", where, Quoted(token.content)));
  Put(std::move(token), where);
}

void AddedTokens::AddExtra(const Json& entry, const TokenModel& model, const std::string& where) {
  AddedToken token = ParseAddedToken(entry, where);
  if (token.content.empty()) return;
  if (const auto known = by_content_.find(token.content); known != by_content_.end()) {
    if (JsonBool(entry, "weak", false, where)) return;
    token.id = tokens_[known->second].id;
    tokens_[known->second] = std::move(token);
    return;
  }
  token.id = model.TokenId(token.content).value_or(std::max(model.max_id(), max_id_) + 1);
  if (Find(token.id) == nullptr) Put(std::move(token), where);
}

void AddedTokens::Put(AddedToken token, const std::string& where) {
  if (token.content.size() > kMaxContentBytes) {
    throw InputError(fmt::format("{}: an added token has {} bytes, expected at most {}", where,
                                 token.content.size(), kMaxContentBytes));
  }
  by_id_.emplace(token.id, tokens_.size());
  by_content_.emplace(token.content, tokens_.size());
  max_id_ = std::max(max_id_, token.id);
  tokens_.push_back(std::move(token));
}

std::vector<Stretch> AddedTokens::Split(std::string_view text, bool normalized) const {
  const TokenMatcher& matcher = normalized ? normalized_ : raw_;
  std::vector<Stretch> stretches;
  std::optional<RegexMatcher> word;  // created when the first single_word token is found
  size_t done = 0;
  size_t search_from = 0;
  while (const auto match = matcher.Find(text, search_from)) {
    search_from = match->end;
    const AddedToken& token = tokens_[match->index];
    size_t begin = match->begin;
    size_t end = match->end;
    if (token.single_word) {
      if (!word) word.emplace(word_character_);
      if (TouchesWord(text, begin, false, *word) || TouchesWord(text, end, true, *word)) continue;
    }
    if (token.lstrip) begin = std::max(SpaceBefore(text, begin), done);
    if (token.rstrip) end = SpaceBehind(text, end);
    if (done < begin) stretches.push_back({-1, done, begin});
    stretches.push_back({token.id, begin, end});
    done = end;
  }
  if (done < text.size()) stretches.push_back({-1, done, text.size()});
  return stretches;
}

const AddedToken* AddedTokens::Find(int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::Find(std::string_view content) const {
  const auto found = by_content_.find(content);
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

}  // namespace oscar
