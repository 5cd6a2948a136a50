// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/token_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "capture/files/quote.h"
#include "capture/text/tokenizer/bpe.h"
#include "capture/text/tokenizer/unigram.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr size_t kMaxCachedBytes = 256;  // longer pieces rarely repeat
constexpr size_t kMaxCachedPieces = size_t{1} << 16;

}  // namespace

void TokenMatcher::Insert(std::string_view content, size_t index) {
  uint32_t node = 0;
  for (const char byte : content) {
    const auto [edge, is_new] =
        edges_.emplace(Edge(node, byte), static_cast<uint32_t>(ends_here_.size()));
    if (is_new) ends_here_.push_back(kNoToken);
    node = edge->second;
  }
  if (ends_here_[node] == kNoToken) ends_here_[node] = index;
}

std::optional<TokenMatcher::Match> TokenMatcher::FindAt(std::string_view text, size_t begin) const {
  std::optional<Match> longest;
  ForEachAt(text, begin, [&](const Match& match) { longest = match; });
  return longest;
}

std::optional<TokenMatcher::Match> TokenMatcher::Find(std::string_view text, size_t from) const {
  if (empty()) return std::nullopt;
  for (size_t begin = from; begin < text.size(); ++begin)
    if (const auto match = FindAt(text, begin)) return match;
  return std::nullopt;
}

std::unique_ptr<const TokenModel> TokenModel::Make(const Json& model, Symbols symbols,
                                                   const std::string& where) {
  if (!model.is_object()) throw InputError(where + ": expected an object");
  const std::string type = JsonString(model, "type", "BPE", where);
  if (type == "BPE") return std::make_unique<BpeModel>(model, symbols, where);
  if (type == "Unigram") return std::make_unique<UnigramModel>(model, symbols, where);
  throw InputError(fmt::format(
      "{}: type {} is not supported; supported: BPE, Unigram. Give rows with \"input_ids\" to "
      "calibrate without this tokenizer",
      where, Quoted(type)));
}

void TokenModel::AddToken(std::string token, int32_t id, const std::string& where) {
  const auto [other, is_new] = tokens_.emplace(id, token);
  if (!is_new) {
    throw InputError(fmt::format("{}: id {} is given to both {} and {}", where, id,
                                 Quoted(other->second), Quoted(token)));
  }
  ids_.emplace(std::move(token), id);
  max_id_ = std::max(max_id_, id);
}

std::vector<int32_t> TokenModel::ByteTokens() const {
  std::vector<int32_t> ids(256);
  for (size_t byte = 0; byte < 256; ++byte)
    ids[byte] = TokenId(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  return ids;
}

std::optional<int32_t> TokenModel::TokenId(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const std::string* TokenModel::Token(int32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

void TokenModel::Encode(std::string_view piece, Cache& cache, std::vector<int32_t>& ids) const {
  const auto known = cache.ranges.find(piece);
  if (known != cache.ranges.end()) {
    ids.insert(ids.end(), cache.ids.begin() + known->second.begin,
               cache.ids.begin() + known->second.end);
    cache.lost += known->second.lost;
    return;
  }
  const size_t begin = ids.size();
  const uint32_t lost = EncodeNew(piece, ids);
  cache.lost += lost;
  if (piece.size() > kMaxCachedBytes || cache.ranges.size() >= kMaxCachedPieces) return;
  const auto first = static_cast<uint32_t>(cache.ids.size());
  cache.ids.insert(cache.ids.end(), ids.begin() + static_cast<ptrdiff_t>(begin), ids.end());
  cache.ranges.emplace(piece, Cache::Range{first, static_cast<uint32_t>(cache.ids.size()), lost});
}

}  // namespace oscar
