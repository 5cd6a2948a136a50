// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/normalizer.h"

#include <utf8proc.h>

#include <cstdint>
#include <cstdlib>
#include <utility>

#include "capture/files/utf8.h"
#include "capture/text/tokenizer/pattern.h"
#include "capture/text/tokenizer/sentencepiece_normalizer.h"
#include "capture/text/tokenizer/tokenizer_components.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

class UnicodeForm : public Normalizer {
 public:
  // This form never changes code points below `first_affected`, in any combination.
  UnicodeForm(int options, uint8_t first_affected_lead)
      : options_(options), first_affected_lead_(first_affected_lead) {}

  std::string Apply(std::string text, size_t) const override {
    bool affected = false;
    for (const char c : text) affected |= static_cast<uint8_t>(c) >= first_affected_lead_;
    if (!affected) return text;
    utf8proc_uint8_t* mapped = nullptr;
    const utf8proc_ssize_t size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                     static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                     static_cast<utf8proc_option_t>(UTF8PROC_STABLE | options_));
    if (size == UTF8PROC_ERROR_NOMEM) throw ResourceError("out of memory in text normalization");
    OSCAR_CHECK_LE(0, size);  // any other error would mean invalid UTF-8
    text.assign(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
    std::free(mapped);
    return text;
  }

 private:
  int options_;
  uint8_t first_affected_lead_;
};

// NFC never changes or composes characters below U+0300, whose lead byte is CC. The other forms
// leave only ASCII unchanged.
constexpr uint8_t kFirstLeadNfc = 0xCC;
constexpr uint8_t kFirstLeadOther = 0x80;

template <int kOptions, uint8_t kFirstLead>
void AppendForm(const Json&, const std::string&, Chain<Normalizer>& chain) {
  chain.push_back(std::make_unique<UnicodeForm>(kOptions, kFirstLead));
}

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string Apply(std::string text, size_t) const override {
    return text.empty() ? text : prefix_ + text;
  }
  bool moves_begin() const override { return true; }

 private:
  std::string prefix_;
};

class Replace : public Normalizer {
 public:
  explicit Replace(PatternReplacement replacement) : replacement_(std::move(replacement)) {}
  std::string Apply(std::string text, size_t max_bytes) const override {
    return replacement_.Apply(std::move(text), max_bytes);
  }
  bool moves_begin() const override { return replacement_.content().empty(); }

 private:
  PatternReplacement replacement_;
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  std::string Apply(std::string text, size_t) const override {
    size_t begin = 0;
    size_t end = text.size();
    size_t last_ink = 0;  // one past the last character that is not white space
    bool leading = true;
    for (size_t i = 0; i < text.size();) {
      const size_t at = i;
      if (IsWhiteSpace(NextCodePoint(text, i))) continue;
      if (leading && left_) begin = at;
      leading = false;
      last_ink = i;
    }
    if (leading) return left_ || right_ ? "" : text;
    if (right_) end = last_ink;
    return text.substr(begin, end - begin);
  }
  bool moves_begin() const override { return left_; }

 private:
  bool left_, right_;
};

// Works on single characters, so a capital sigma at the end of a word is not a special case.
class Lowercase : public Normalizer {
 public:
  std::string Apply(std::string text, size_t) const override {
    std::string out;
    for (size_t i = 0; i < text.size();) {
      const char32_t c = NextCodePoint(text, i);
      AppendUtf8(c == 0x130
                     ? U'i'
                     : static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))),
                 out);
      if (c == 0x130) AppendUtf8(0x307, out);
    }
    return out;
  }
};

class StripAccents : public Normalizer {
 public:
  std::string Apply(std::string text, size_t) const override {
    std::string out;
    for (size_t i = 0; i < text.size();) {
      const char32_t c = NextCodePoint(text, i);
      const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
      if (category != UTF8PROC_CATEGORY_MN) AppendUtf8(c, out);
    }
    return out;
  }
  bool moves_begin() const override { return true; }
};

std::span<const ComponentKind<Normalizer>> Kinds() {
  static const std::vector<ComponentKind<Normalizer>> kinds = {
      {"NFC", {}, AppendForm<UTF8PROC_COMPOSE, kFirstLeadNfc>},
      {"NFD", {}, AppendForm<UTF8PROC_DECOMPOSE, kFirstLeadOther>},
      {"NFKC", {}, AppendForm<UTF8PROC_COMPOSE | UTF8PROC_COMPAT, kFirstLeadOther>},
      {"NFKD", {}, AppendForm<UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, kFirstLeadOther>},
      {"Prepend",
       {"prepend"},
       [](const Json& component, const std::string& where, Chain<Normalizer>& chain) {
         chain.push_back(std::make_unique<Prepend>(JsonString(component, "prepend", where)));
       }},
      {"Replace",
       {"pattern", "content"},
       [](const Json& component, const std::string& where, Chain<Normalizer>& chain) {
         chain.push_back(std::make_unique<Replace>(PatternReplacement(component, where)));
       }},
      {"Strip",
       {"strip_left", "strip_right"},
       [](const Json& component, const std::string& where, Chain<Normalizer>& chain) {
         chain.push_back(std::make_unique<Strip>(JsonBool(component, "strip_left", true, where),
                                                 JsonBool(component, "strip_right", true, where)));
       }},
      {"Precompiled",
       {"precompiled_charsmap"},
       [](const Json& component, const std::string& where, Chain<Normalizer>& chain) {
         chain.push_back(MakePrecompiled(component, where));
       }},
      {"Lowercase",
       {},
       [](const Json&, const std::string&, Chain<Normalizer>& chain) {
         chain.push_back(std::make_unique<Lowercase>());
       }},
      {"StripAccents",
       {},
       [](const Json&, const std::string&, Chain<Normalizer>& chain) {
         chain.push_back(std::make_unique<StripAccents>());
       }},
      {"Sequence",
       {"normalizers"},
       [](const Json& component, const std::string& where, Chain<Normalizer>& chain) {
         AppendSequence(Kinds(), component, "normalizers", where, chain);
       }},
  };
  return kinds;
}

}  // namespace

Chain<Normalizer> MakeNormalizers(const Json& component, const std::string& where) {
  Chain<Normalizer> chain;
  AppendComponent(Kinds(), component, where, chain);
  return chain;
}

std::string Normalize(const Chain<Normalizer>& chain, std::string text) {
  const size_t max_bytes = MaxGrownBytes(text.size());
  for (const auto& step : chain) {
    text = step->Apply(std::move(text), max_bytes);
    CheckGrownBytes(text.size(), max_bytes);
  }
  return text;
}

std::vector<std::string_view> NormalizerTypes() { return TypesOf(Kinds()); }

}  // namespace oscar
