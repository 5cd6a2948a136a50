// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "capture/files/quote.h"
#include "capture/files/utf8.h"
#include "capture/text/template/unicode.h"

namespace oscar::jinja {
namespace {

constexpr std::string_view kOperators[] = {"**", "//", "==", "!=", ">=", "<=", "+", "-", "/",
                                           "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                           ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         (c & 0x80) != 0;
}
bool IsDigitByte(char c) { return c >= '0' && c <= '9'; }

// \r\n and \r become \n; one newline at the end is dropped (keep_trailing_newline is off).
std::string NormalizeNewlines(std::string_view source) {
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> Run() {
    while (at_ < source_.size()) Root();
    Emit(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view Rest() const { return std::string_view(source_).substr(at_); }
  bool Looks(std::string_view text) const { return Rest().starts_with(text); }

  void Advance(size_t bytes) {
    line_ +=
        static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(at_),
                                    source_.begin() + static_cast<ptrdiff_t>(at_ + bytes), '\n'));
    at_ += bytes;
  }
  void SkipSpace() {
    while (at_ < source_.size()) {
      size_t next = at_;
      if (!IsSpace(NextCodePoint(source_, next))) break;
      Advance(next - at_);
    }
  }
  void Emit(TokenKind kind, std::string text, Value number = {}) {
    tokens_.push_back({kind, std::move(text), std::move(number), line_});
  }

  // Text up to a tag that begins with `sign` ('-', '+' or none), with white space cut as it says.
  std::string_view Stripped(std::string_view text, char sign, bool is_variable) const {
    const auto is_blank = [](std::string_view part) {
      for (size_t i = 0; i < part.size();) {
        if (!IsSpace(NextCodePoint(part, i))) return false;
      }
      return true;
    };
    if (sign == '-') {
      while (!text.empty()) {
        size_t begin = text.size() - 1;
        while (begin > 0 && (text[begin] & 0xC0) == 0x80) --begin;
        if (!is_blank(text.substr(begin))) break;
        text = text.substr(0, begin);
      }
      return text;
    }
    if (sign == '+' || is_variable) return text;
    const size_t newline = text.rfind('\n');
    const size_t line_begin = newline == text.npos ? 0 : newline + 1;
    if ((line_begin > 0 || line_starting_) && is_blank(text.substr(line_begin)))
      return text.substr(0, line_begin);
    return text;
  }

  char Sign(size_t at) const {
    if (at >= source_.size()) return '\0';
    return source_[at] == '-' || source_[at] == '+' ? source_[at] : '\0';
  }

  // Text and the tag that follows it.
  void Root() {
    size_t tag = at_;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == source_.npos) break;
      const char next = tag + 1 < source_.size() ? source_[tag + 1] : '\0';
      if (next == '%' || next == '{' || next == '#') break;
      ++tag;
    }
    if (tag == source_.npos) {
      Emit(TokenKind::kData, std::string(Rest()));
      Advance(source_.size() - at_);
      return;
    }
    const char kind = source_[tag + 1];
    const char sign = Sign(tag + 2);
    const std::string_view text =
        Stripped(std::string_view(source_).substr(at_, tag - at_), sign, kind == '{');
    if (!text.empty()) Emit(TokenKind::kData, std::string(text));
    Advance(tag - at_);
    const int tag_line = line_;
    Advance(sign != '\0' ? 3 : 2);
    line_starting_ = false;
    if (kind == '#') return Comment(tag_line);
    if (kind == '{') return Tag(TokenKind::kVariableBegin, TokenKind::kVariableEnd, tag_line);
    if (!Raw(tag_line)) Tag(TokenKind::kBlockBegin, TokenKind::kBlockEnd, tag_line);
  }

  // The end of a tag: "%}", "-%}" and white space behind it, "+%}". A newline is cut by "%}" only.
  bool End(std::string_view close, bool trims_newline, bool allows_plus) {
    const size_t begin = at_;
    if (Looks("-") && Rest().substr(1).starts_with(close)) {
      Advance(1 + close.size());
      SkipSpace();
    } else if (allows_plus && Looks("+") && Rest().substr(1).starts_with(close)) {
      Advance(1 + close.size());
    } else if (Looks(close)) {
      Advance(close.size());
      if (trims_newline && Looks("\n")) Advance(1);
    } else {
      return false;
    }
    line_starting_ = at_ > begin && source_[at_ - 1] == '\n';
    return true;
  }

  void Comment(int tag_line) {
    while (at_ < source_.size()) {
      if (End("#}", true, true)) return;
      Advance(1);
    }
    FailSyntax(tag_line, "Missing end of comment tag");
  }

  // {% raw %} up to {% endraw %}: `at_` stands behind "{%" and its sign.
  bool Raw(int tag_line) {
    const size_t begin = at_;
    const int line = line_;
    SkipSpace();
    if (Looks("raw") && (at_ + 3 >= source_.size() || !IsNameByte(source_[at_ + 3]))) {
      Advance(3);
      SkipSpace();
      if (End("%}", false, false)) {
        RawText(tag_line);
        return true;
      }
    }
    at_ = begin;
    line_ = line;
    return false;
  }

  void RawText(int tag_line) {
    for (size_t tag = at_; (tag = source_.find("{%", tag)) != source_.npos; ++tag) {
      const char sign = Sign(tag + 2);
      const size_t text_begin = at_;
      const int text_line = line_;
      const bool text_starts_line = line_starting_;
      Advance(tag - at_ + (sign != '\0' ? 3 : 2));
      SkipSpace();
      bool ends = false;
      if (Looks("endraw")) {
        Advance(6);
        SkipSpace();
        ends = End("%}", true, true);
      }
      if (!ends) {
        at_ = text_begin;
        line_ = text_line;
        continue;
      }
      const bool behind_starts_line = line_starting_;
      line_starting_ = text_starts_line;
      Emit(TokenKind::kData,
           std::string(Stripped(std::string_view(source_).substr(text_begin, tag - text_begin),
                                sign, false)));
      line_starting_ = behind_starts_line;
      return;
    }
    FailSyntax(tag_line, "Missing end of raw directive");
  }

  // The tokens of {% ... %} or {{ ... }}.
  void Tag(TokenKind begin, TokenKind end, int tag_line) {
    const bool is_block = begin == TokenKind::kBlockBegin;
    Emit(begin, "");
    std::string open;  // the closing brackets that are due
    while (at_ < source_.size()) {
      if (open.empty()) {
        const int line = line_;
        if (End(is_block ? "%}" : "}}", is_block, is_block)) {
          Emit(end, "");
          tokens_.back().line = line;
          return;
        }
      }
      line_starting_ = false;
      size_t next = at_;
      if (IsSpace(NextCodePoint(source_, next))) {
        SkipSpace();
      } else if (IsDigitByte(source_[at_])) {
        Number();
      } else if (IsNameByte(source_[at_])) {
        size_t stop = at_;
        while (stop < source_.size() && IsNameByte(source_[stop])) ++stop;
        Emit(TokenKind::kName, source_.substr(at_, stop - at_));
        Advance(stop - at_);
      } else if (source_[at_] == '\'' || source_[at_] == '"') {
        String();
      } else {
        Operator(open);
      }
    }
    FailSyntax(tag_line, fmt::format("this tag is not closed by {}", is_block ? "%}" : "}}"));
  }

  void Operator(std::string& open) {
    const auto* found =
        std::ranges::find_if(kOperators, [&](std::string_view op) { return Looks(op); });
    if (found == std::end(kOperators))
      FailSyntax(line_, "unexpected character " + Quoted(source_.substr(at_, 1)));
    const char c = found->front();
    if (c == '(' || c == '[' || c == '{') {
      open += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) FailSyntax(line_, fmt::format("unexpected '{}'", c));
      if (open.back() != c)
        FailSyntax(line_, fmt::format("unexpected '{}', expected '{}'", c, open.back()));
      open.pop_back();
    }
    Emit(TokenKind::kOperator, std::string(*found));
    Advance(found->size());
  }

  // Digits with single underscores between them, from `at`; one past the last.
  size_t Digits(size_t at, bool (*is_digit)(char)) const {
    while (at < source_.size()) {
      if (is_digit(source_[at])) {
        ++at;
      } else if (source_[at] == '_' && at + 1 < source_.size() && is_digit(source_[at + 1])) {
        at += 2;
      } else {
        break;
      }
    }
    return at;
  }

  void Number() {
    const auto is_hex = [](char c) {
      return IsDigitByte(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
    };
    const auto at = [&](size_t i) { return i < source_.size() ? source_[i] : '\0'; };
    const char prefix = source_[at_] == '0' ? static_cast<char>(at(at_ + 1) | 0x20) : '\0';
    int base = 10;
    if (prefix == 'x') base = 16;
    if (prefix == 'o') base = 8;
    if (prefix == 'b') base = 2;
    if (base != 10) {
      const size_t stop = Digits(at_ + 2, is_hex);
      return Integer(stop, at_ + 2, base);
    }
    size_t stop = Digits(at_, IsDigitByte);
    // No float directly behind a dot: foo.0.1 has two subscripts.
    const bool may_be_float = at_ == 0 || source_[at_ - 1] != '.';
    bool is_float = false;
    if (may_be_float && at(stop) == '.' && IsDigitByte(at(stop + 1))) {
      stop = Digits(stop + 1, IsDigitByte);
      is_float = true;
    }
    if (may_be_float && (at(stop) | 0x20) == 'e') {
      size_t digits = stop + 1;
      if (at(digits) == '+' || at(digits) == '-') ++digits;
      if (IsDigitByte(at(digits))) {
        stop = Digits(digits, IsDigitByte);
        is_float = true;
      }
    }
    if (!is_float) return Integer(stop, at_, 10);
    std::string text = source_.substr(at_, stop - at_);
    std::erase(text, '_');
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    Emit(TokenKind::kNumber, text, Value::Float(value));
    Advance(stop - at_);
  }

  void Integer(size_t stop, size_t digits, int base) {
    std::string text = source_.substr(digits, stop - digits);
    std::erase(text, '_');
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error == std::errc::result_out_of_range && base == 10) {
      Emit(TokenKind::kNumber, text, Value::Big(text));
    } else if (error != std::errc() || end != text.data() + text.size()) {
      FailSyntax(line_, "malformed number " + Quoted(source_.substr(at_, stop - at_)));
    } else {
      Emit(TokenKind::kNumber, text, Value::Int(value));
    }
    Advance(stop - at_);
  }

  // Python's escapes in a string literal.
  void Escape(size_t& i, std::string& out) const {
    static constexpr std::string_view kNames = "abfnrtv\\'\"";
    static constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"";
    const char c = source_[i++];
    if (const size_t known = kNames.find(c); known != kNames.npos) {
      out += kValues[known];
      return;
    }
    if (c == '\n') return;
    const auto digits = [&](size_t count, int base, bool exact) {
      uint32_t value = 0;
      const size_t most = std::min(count, source_.size() - i);
      const auto end =
          std::from_chars(source_.data() + i, source_.data() + i + most, value, base).ptr;
      const auto used = static_cast<size_t>(end - (source_.data() + i));
      if (used == 0 || (exact && used != count) || value > 0x10FFFF ||
          (value >= 0xD800 && value < 0xE000)) {
        FailSyntax(line_, "malformed escape in a string");
      }
      i += used;
      AppendUtf8(value, out);
    };
    if (c == 'x') return digits(2, 16, true);
    if (c == 'u') return digits(4, 16, true);
    if (c == 'U') return digits(8, 16, true);
    if (c >= '0' && c <= '7') {
      --i;
      return digits(3, 8, false);
    }
    if (c == 'N') FailSyntax(line_, "\\N{name} in a string is not supported");
    out += '\\';
    out += c;
  }

  void String() {
    const char quote = source_[at_];
    std::string value;
    size_t i = at_ + 1;
    while (i < source_.size() && source_[i] != quote) {
      if (source_[i] == '\\' && i + 1 < source_.size()) {
        ++i;
        Escape(i, value);
      } else {
        value += source_[i++];
      }
    }
    if (i >= source_.size()) FailSyntax(line_, "this string does not end");
    Emit(TokenKind::kString, std::move(value));
    Advance(i + 1 - at_);
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // what was read last ended with a newline
  std::vector<Token> tokens_;
};

}  // namespace

void FailSyntax(int line, const std::string& message) {
  throw TemplateFailure(fmt::format("line {}: {}", line, message));
}

std::vector<Token> Tokenize(std::string_view source) {
  return Lexer(NormalizeNewlines(source)).Run();
}

}  // namespace oscar::jinja
