// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/unigram.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "capture/files/quote.h"
#include "capture/files/utf8.h"
#include "capture/text/tokenizer/component_table.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr std::string_view kModelFields[] = {"unk_id", "vocab", "byte_fallback"};
constexpr double kUnknownPenalty = 10;  // below the lowest score; kUnkPenalty in both libraries

}  // namespace

UnigramModel::UnigramModel(const Json& model, Symbols symbols, const std::string& where) {
  CheckFields(model, kModelFields, where);
  if (symbols == Symbols::kBytes) {
    throw InputError(where +
                     ": Unigram after a ByteLevel pre-tokenizer is not supported. Give rows with "
                     "\"input_ids\" to calibrate without this tokenizer");
  }
  const Json& vocabulary = JsonArray(model, "vocab", where);
  double least = 0;
  for (const Json& entry : vocabulary) {
    const auto id = static_cast<int32_t>(scores_.size());
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
      throw InputError(fmt::format("{}: vocab[{}]: expected [token, score], found {}", where, id,
                                   Escaped(entry.dump())));
    }
    const auto& token = entry[0].get_ref<const std::string&>();
    AddToken(token, id, where);
    if (!token.empty()) pieces_.Insert(token, static_cast<size_t>(id));
    scores_.push_back(entry[1].get<double>());
    least = id == 0 ? scores_.back() : std::min(least, scores_.back());
  }
  unknown_score_ = least - kUnknownPenalty;
  if (const auto id = model.find("unk_id"); id != model.end() && !id->is_null()) {
    const int64_t unknown = JsonInt(model, "unk_id", where);
    if (unknown < 0 || unknown > max_id()) {
      throw InputError(fmt::format("{}: unk_id {}: expected an id in [0, {})", where, unknown,
                                   int64_t{max_id()} + 1));
    }
    unknown_ = static_cast<int32_t>(unknown);
  }
  if (JsonBool(model, "byte_fallback", false, where)) byte_ids_ = ByteTokens();
}

UnigramModel::UnigramModel(const SentencePieceVocabulary& vocabulary, const std::string& where)
    : float32_sums_(true) {
  using Type = SentencePieceVocabulary::Type;
  float least = std::numeric_limits<float>::max();
  float most = std::numeric_limits<float>::lowest();
  for (const auto& piece : vocabulary.pieces) {
    if (piece.type != Type::kNormal) continue;
    least = std::min(least, piece.score);
    most = std::max(most, piece.score);
  }
  unknown_score_ = least - static_cast<float>(kUnknownPenalty);
  for (size_t i = 0; i < vocabulary.pieces.size(); ++i) {
    const auto& [text, score, type] = vocabulary.pieces[i];
    const auto id = static_cast<int32_t>(i);
    AddToken(text, id, where);
    if (type == Type::kUnknown) unknown_ = id;
    if (type == Type::kNormal || type == Type::kUserDefined) pieces_.Insert(text, i);
    scores_.push_back(type == Type::kUserDefined ? static_cast<float>(text.size()) * most - 0.1
                                                 : double{score});
  }
  if (vocabulary.byte_fallback) byte_ids_ = ByteTokens();
}

// The Viterbi algorithm over byte positions, as in unigram_model.cc, EncodeOptimized()
// (SentencePiece) and models/unigram/model.rs (tokenizers).
uint32_t UnigramModel::EncodeNew(std::string_view piece, std::vector<int32_t>& ids) const {
  constexpr int32_t kNoToken = -1;
  constexpr size_t kUnreached = static_cast<size_t>(-1);
  struct Node {
    double score = 0;  // score of the best path that ends here
    size_t begin = kUnreached;
    int32_t token = kNoToken;
  };
  std::vector<Node> ends(piece.size() + 1);
  for (size_t begin = 0; begin < piece.size();) {
    size_t next = begin;
    NextCodePoint(piece, next);
    const double here = ends[begin].score;
    const auto offer = [&](size_t end, double score, int32_t token) {
      Node& node = ends[end];
      const double sum = score + here;
      if (node.begin != kUnreached && sum <= node.score) return;
      node = {float32_sums_ ? double{static_cast<float>(sum)} : sum, begin, token};
    };
    bool has_character = false;
    pieces_.ForEachAt(piece, begin, [&](const TokenMatcher::Match& match) {
      offer(match.end, scores_[match.index], static_cast<int32_t>(match.index));
      has_character = has_character || match.end == next;
    });
    if (!has_character) offer(next, unknown_score_, kNoToken);
    begin = next;
  }

  std::vector<std::pair<size_t, int32_t>> path;  // begin and token, from the end backwards
  for (size_t end = piece.size(); end > 0; end = ends[end].begin)
    path.emplace_back(ends[end].begin, ends[end].token);
  std::ranges::reverse(path);
  uint32_t lost = 0;
  for (size_t i = 0; i < path.size();) {
    const auto [begin, token] = path[i];
    const size_t first = i++;
    if (token != kNoToken && token != unknown_) {
      ids.push_back(token);
      continue;
    }
    while (i < path.size() && (path[i].second == kNoToken || path[i].second == unknown_)) ++i;
    const size_t end = i < path.size() ? path[i].first : piece.size();
    const std::string_view run = piece.substr(begin, end - begin);
    const auto byte_id = [&](char c) { return byte_ids_[static_cast<uint8_t>(c)]; };
    if (token != kNoToken && i == first + 1) {
      ids.push_back(token);  // the text itself is the unknown token
    } else if (!byte_ids_.empty() &&
               std::ranges::all_of(run, [&](char c) { return byte_id(c) >= 0; })) {
      for (const char c : run) ids.push_back(byte_id(c));
    } else if (unknown_) {
      ids.push_back(*unknown_);
    } else {
      lost += static_cast<uint32_t>(i - first);
    }
  }
  return lost;
}

}  // namespace oscar
