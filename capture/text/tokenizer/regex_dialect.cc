// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/regex_dialect.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <vector>

#include "capture/files/utf8.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Unicode White_Space and its complement, as members of a character class.
constexpr std::string_view kSpace =
    R"(\t-\r\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view kNotSpace =
    R"(\x00-\x08\x0E-\x1F\x21-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF})"
    R"(\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})";
// Unicode \w in Oniguruma.
constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

constexpr size_t kMaxPatternBytes = size_t{64} << 10;
constexpr size_t kNoAtom = static_cast<size_t>(-1);

class Translator {
 public:
  Translator(std::string_view in, std::string_view where) : in_(in), where_(where) {}

  std::string Run() {
    if (in_.size() > kMaxPatternBytes) Refuse("a pattern longer than 64 KiB");
    while (!AtEnd()) Element();
    if (!open_groups_.empty()) Refuse("a group that is not closed");
    return std::move(out_);
  }

 private:
  [[noreturn]] void Refuse(std::string_view construct) const {
    throw InputError(
        fmt::format("{}: the pattern uses {} (byte {}), which is not supported. Pattern: {}",
                    where_, construct, position_, in_.substr(0, 300)));
  }

  bool AtEnd() const { return position_ >= in_.size(); }
  char Peek(size_t ahead = 0) const {
    return position_ + ahead < in_.size() ? in_[position_ + ahead] : '\0';
  }
  bool Consume(std::string_view text) {
    if (in_.substr(position_, text.size()) != text) return false;
    position_ += text.size();
    return true;
  }
  bool AtDigit(size_t ahead = 0) const {
    return std::isdigit(static_cast<unsigned char>(Peek(ahead))) != 0;
  }

  void Element() {
    const char c = Peek();
    if (c == '*' || c == '+' || c == '?' || (c == '{' && IntervalSize() != 0)) return Quantifier();
    if (c == '(') return OpenGroup();
    if (c == ')') {
      if (open_groups_.empty()) Refuse("a ) without (");
      atom_ = open_groups_.back();
      open_groups_.pop_back();
      CopyCharacter();
    } else if (c == '|') {
      atom_ = kNoAtom;
      CopyCharacter();
    } else {
      atom_ = out_.size();
      if (c == '[') {
        Class();
      } else if (c == '\\') {
        Escape(/*in_class=*/false);
      } else if (c == '{' || c == '}' || c == ']') {
        out_ += '\\';
        CopyCharacter();
      } else {
        CopyCharacter();
      }
    }
    quantified_ = false;
  }

  // Copies one code point unchanged, so that a quantifier applies to all its bytes.
  void CopyCharacter() {
    const size_t begin = position_;
    NextCodePoint(in_, position_);
    out_.append(in_.substr(begin, position_ - begin));
  }

  void OpenGroup() {
    static constexpr std::array<std::string_view, 9> kHeads = {
        "(?:", "(?i:", "(?-i:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "("};
    const bool at_start = position_ == 0;
    if (Peek(1) == '?' && at_start && Consume("(?i)")) {
      out_ += "(?i)";
      return;
    }
    for (const std::string_view head : kHeads) {
      if (head == "(" && (Peek(1) == '?' || Peek(1) == '*')) break;
      if (!Consume(head)) continue;
      open_groups_.push_back(out_.size());
      out_ += head;
      atom_ = kNoAtom;
      return;
    }
    Refuse(fmt::format("the group {}", in_.substr(position_, 5)));
  }

  // Returns the bytes of {n}, {n,}, {n,m} or {,m} at the current position; 0: a literal brace.
  size_t IntervalSize() const {
    size_t i = 1;
    size_t digits = 0;
    for (; AtDigit(i); ++i) ++digits;
    if (Peek(i) == ',') {
      for (++i; AtDigit(i); ++i) ++digits;
    }
    return digits > 0 && Peek(i) == '}' ? i + 1 : 0;
  }

  void Quantifier() {
    if (atom_ == kNoAtom) Refuse("a repetition without anything to repeat");
    if (quantified_) {  // X{1,3}+ repeats X{1,3} in Oniguruma but is possessive in PCRE2
      out_.insert(atom_, "(?:");
      out_ += ')';
    }
    quantified_ = true;
    if (Peek() != '{') {
      CopyCharacter();
      if (Peek() == '?' || Peek() == '+') CopyCharacter();  // lazy or possessive in both dialects
      return;
    }
    const std::string_view interval = in_.substr(position_, IntervalSize());
    const bool exact = interval.find(',') == std::string_view::npos;
    if (exact && Peek(interval.size()) == '?') Refuse("{n}?");
    out_ += interval[1] == ',' ? "{0" : "{";
    out_.append(interval.substr(1));
    position_ += interval.size();
    if (Peek() == '?') CopyCharacter();
  }

  void Class() {
    CopyCharacter();
    if (Peek() == '^') CopyCharacter();
    if (Peek() == ']') {
      out_ += '\\';
      CopyCharacter();
    }
    while (!AtEnd() && Peek() != ']') {
      if (Peek() == '[') Refuse("a class inside a class");
      if (Peek() == '&' && Peek(1) == '&') Refuse("an intersection of classes, &&");
      if (Peek() != '\\') {
        CopyCharacter();
        continue;
      }
      const bool is_set = Escape(/*in_class=*/true);
      if (is_set && Peek() == '-') {  // a literal hyphen, never a range
        out_ += '\\';
        CopyCharacter();
      }
    }
    if (AtEnd()) Refuse("a class that is not closed");
    CopyCharacter();
  }

  void PutSet(bool in_class, bool negated, std::string_view members) {
    if (in_class) {
      out_.append(members);
    } else {
      out_ += fmt::format("{}{}]", negated ? "[^" : "[", members);
    }
  }

  // Returns true if the escape means a set of characters.
  bool Escape(bool in_class) {
    const char c = Peek(1);
    const size_t begin = position_;
    const auto copy = [&](size_t size) {
      out_.append(in_.substr(begin, size));
      position_ = begin + size;
    };
    switch (c) {
      case 's':
        position_ += 2;
        PutSet(in_class, false, kSpace);
        return true;
      case 'S':
        position_ += 2;
        PutSet(in_class, !in_class, in_class ? kNotSpace : kSpace);
        return true;
      case 'w':
        position_ += 2;
        PutSet(in_class, false, kWord);
        return true;
      case 'W':
        if (in_class) Refuse("\\W inside a class");
        position_ += 2;
        PutSet(in_class, true, kWord);
        return true;
      case 'd':
      case 'D':
        copy(2);
        return true;
      case 'p':
      case 'P': {
        const size_t end = in_.find('}', begin);
        if (Peek(2) != '{' || end == std::string_view::npos) Refuse("\\p without {property}");
        copy(end + 1 - begin);
        return true;
      }
      case 'r':
      case 'n':
      case 't':
      case 'f':
        copy(2);
        return false;
      case 'v':
        position_ += 2;
        out_ += "\\x0B";
        return false;
      case 'x':
      case 'u':
        CodePoint();
        return false;
      case 'A':
      case 'z':
        if (in_class) break;
        copy(2);
        return false;
      default:
        break;
    }
    if (c == '\0' || std::isalnum(static_cast<unsigned char>(c)) != 0) {
      Refuse(fmt::format("the escape \\{}", in_.substr(begin + 1, 1)));
    }
    ++position_;
    if (std::ispunct(static_cast<unsigned char>(c)) != 0) out_ += '\\';
    CopyCharacter();
    return false;
  }

  // Translates \x{H...}, \xHH below 80 (Oniguruma reads others as bytes of UTF-8), and \uHHHH.
  void CodePoint() {
    const bool is_u = Peek(1) == 'u';
    const bool braced = !is_u && Peek(2) == '{';
    size_t i = braced ? 3 : 2;
    std::string digits;
    const size_t wanted = is_u ? 4 : braced ? 6 : 2;
    while (std::isxdigit(static_cast<unsigned char>(Peek(i))) != 0 && digits.size() < wanted) {
      digits += Peek(i++);
    }
    if (digits.empty() || (is_u && digits.size() != 4) || (braced && Peek(i) != '}')) {
      Refuse("a malformed code point escape");
    }
    if (!is_u && !braced && std::stoul(digits, nullptr, 16) >= 0x80) Refuse("\\x80 to \\xFF");
    position_ += braced ? i + 1 : i;
    out_ += fmt::format("\\x{{{}}}", digits);
  }

  std::string_view in_;
  std::string_view where_;
  size_t position_ = 0;  // bytes of `in_`
  std::string out_;
  std::vector<size_t> open_groups_;  // offsets in `out_`
  size_t atom_ = kNoAtom;            // offset in `out_` of the part that a quantifier would repeat
  bool quantified_ = false;          // the atom already carries a quantifier
};

}  // namespace

std::string OnigurumaToPcre2(std::string_view pattern, std::string_view where) {
  return Translator(pattern, where).Run();
}

Regex OnigurumaRegex(std::string_view pattern, std::string where) {
  const std::string translated = OnigurumaToPcre2(pattern, where);
  return {translated, Regex::Syntax::kPcre2, std::move(where)};
}

}  // namespace oscar
