// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/sentencepiece_normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <utility>

#include "capture/files/utf8.h"
#include "capture/text/tokenizer/pattern.h"  // CheckGrownBytes
#include "capture/text/tokenizer/token_model.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

uint32_t LittleEndian32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

std::string FromBase64(std::string_view text, const std::string& where) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) throw InputError(where + ": precompiled_charsmap is not base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

// Follows normalizers/precompiled.rs of Hugging Face tokenizers. If a short grapheme has a prefix
// in the map, the replacement of its shortest such prefix replaces the whole grapheme. Otherwise
// its characters are replaced one by one.
class Precompiled : public Normalizer {
 public:
  explicit Precompiled(Charsmap map) : map_(std::move(map)) {}

  std::string Apply(std::string text, size_t max_bytes) const override {
    constexpr size_t kLongGrapheme = 6;  // bytes
    std::string out;
    for (size_t begin = 0; begin < text.size();) {
      const std::string_view grapheme = GraphemeAt(text, begin);
      begin += grapheme.size();
      const auto whole =
          grapheme.size() < kLongGrapheme ? map_.Find(grapheme, false) : std::nullopt;
      if (whole) out += whole->replacement;
      for (size_t i = 0; i < grapheme.size() && !whole;) {
        const size_t at = i;
        NextCodePoint(grapheme, i);
        const std::string_view character = grapheme.substr(at, i - at);
        const auto match = map_.Find(character, false);
        out += match ? match->replacement : character;
      }
      CheckGrownBytes(out.size(), max_bytes);
    }
    return out;
  }

 private:
  static std::string_view GraphemeAt(std::string_view text, size_t begin) {
    size_t end = begin;
    auto last = static_cast<utf8proc_int32_t>(NextCodePoint(text, end));
    utf8proc_int32_t state = 0;
    for (size_t next = end; end < text.size(); end = next) {
      const auto c = static_cast<utf8proc_int32_t>(NextCodePoint(text, next));
      if (utf8proc_grapheme_break_stateful(last, c, &state)) break;
      last = c;
    }
    return text.substr(begin, end - begin);
  }

  Charsmap map_;
};

// Follows Normalize() in SentencePiece's normalizer.cc.
class SentencePieceNormalizer : public Normalizer {
 public:
  SentencePieceNormalizer(const SentencePieceVocabulary& vocabulary, bool prefixes,
                          const std::string& where)
      : removes_spaces_(vocabulary.remove_extra_whitespaces),
        prefixes_(prefixes && vocabulary.add_dummy_prefix),
        suffix_(vocabulary.whitespace_as_suffix),
        space_(vocabulary.escape_whitespaces ? "\u2581" : " ") {
    if (!vocabulary.charsmap.empty()) map_.emplace(vocabulary.charsmap, where);
    for (const auto& piece : vocabulary.pieces) {
      if (piece.type == SentencePieceVocabulary::Type::kUserDefined && !piece.text.empty())
        kept_.Insert(piece.text, 0);
    }
  }

  std::string Apply(std::string text, size_t max_bytes) const override {
    std::string_view rest = text;
    while (removes_spaces_ && !rest.empty()) {
      const auto [length, part] = NextPart(rest);
      if (part != " ") break;
      rest.remove_prefix(length);
    }
    if (rest.empty()) return "";
    std::string out;
    if (prefixes_ && !suffix_) out += space_;
    bool after_space = removes_spaces_;
    while (!rest.empty()) {
      auto [length, part] = NextPart(rest);
      rest.remove_prefix(length);
      while (after_space && part.starts_with(' ')) part.remove_prefix(1);
      if (!part.empty()) after_space = removes_spaces_ && part.ends_with(' ');
      for (const char c : part) {
        if (c == ' ') {
          out += space_;
        } else {
          out += c;
        }
      }
      CheckGrownBytes(out.size(), max_bytes);
    }
    while (removes_spaces_ && out.ends_with(space_)) out.resize(out.size() - space_.size());
    if (prefixes_ && suffix_) out += space_;
    return out;
  }
  bool moves_begin() const override { return true; }

 private:
  Charsmap::Match NextPart(std::string_view text) const {
    if (!kept_.empty()) {
      if (const auto kept = kept_.FindAt(text, 0)) return {kept->end, text.substr(0, kept->end)};
    }
    if (map_) {
      if (const auto match = map_->Find(text, true)) return *match;
    }
    size_t end = 0;
    NextCodePoint(text, end);
    return {end, text.substr(0, end)};
  }

  std::optional<Charsmap> map_;
  TokenMatcher kept_;  // user-defined pieces, which are not changed
  bool removes_spaces_, prefixes_, suffix_;
  std::string_view space_;
};

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const std::string& where) {
  const size_t size = bytes.size() < 4 ? 0 : LittleEndian32(bytes, 0);
  if (size == 0 || size % 4 != 0 || size > bytes.size() - 4) {
    throw InputError(
        fmt::format("{}: precompiled_charsmap has {} bytes and its trie {}; expected the trie to "
                    "be smaller and a multiple of 4 bytes",
                    where, bytes.size(), size));
  }
  for (size_t at = 4; at < 4 + size; at += 4) trie_.push_back(LittleEndian32(bytes, at));
  replacements_ = bytes.substr(4 + size);
  replacements_ += '\0';
  if (const auto invalid = FirstInvalidUtf8(replacements_)) {
    throw InputError(
        fmt::format("{}: precompiled_charsmap: replacement byte {} is not UTF-8", where, *invalid));
  }
}

std::optional<Charsmap::Match> Charsmap::Find(std::string_view text, bool longest) const {
  const auto offset = [](uint32_t unit) { return unit >> 10 << ((unit & 1U << 9) >> 6); };
  std::optional<Match> found;
  uint32_t node = offset(trie_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (node >= trie_.size()) break;
    const uint32_t unit = trie_[node];
    if ((unit & (1U << 31 | 0xFF)) != byte) break;
    node ^= offset(unit);
    if ((unit >> 8 & 1) == 0) continue;
    if (node >= trie_.size()) break;
    const uint32_t value = trie_[node] & ~(1U << 31);
    // A match that ends inside a character would leave invalid UTF-8; no real map has one.
    const bool inside = i + 1 < text.size() && (static_cast<uint8_t>(text[i + 1]) & 0xC0) == 0x80;
    if (value >= replacements_.size() || inside ||
        (static_cast<uint8_t>(replacements_[value]) & 0xC0) == 0x80)
      continue;
    found = Match{i + 1, replacements_.c_str() + value};
    if (!longest) break;
  }
  return found;
}

std::unique_ptr<const Normalizer> MakePrecompiled(const Json& component, const std::string& where) {
  return std::make_unique<Precompiled>(
      Charsmap(FromBase64(JsonString(component, "precompiled_charsmap", where), where), where));
}

std::unique_ptr<const Normalizer> MakeSentencePieceNormalizer(
    const SentencePieceVocabulary& vocabulary, bool prefixes, const std::string& where) {
  return std::make_unique<SentencePieceNormalizer>(vocabulary, prefixes, where);
}

}  // namespace oscar
