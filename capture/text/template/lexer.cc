// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/lexer.h"

#include <fmt/format.h>
#include <locale.h>
#include <stdlib.h>

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

bool IsDigitByte(char c) { return c >= '0' && c <= '9'; }
bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigitByte(c) || c == '_' ||
         (c & 0x80) != 0;
}

// Converts digits like Python's float(), with infinity or zero outside its range.
double PythonFloat(std::string_view text) {
  static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
  return strtod_l(std::string(text).c_str(), nullptr, c_locale);
}

// \r\n and \r become \n; one newline at the end is dropped (keep_trailing_newline is off).
std::string NormalizeNewlines(std::string_view source) {
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    out += source[i] == '\r' ? '\n' : source[i];
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> Run() {
    while (at_ < source_.size()) TextAndTag();
    Emit(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view Rest() const { return std::string_view(source_).substr(at_); }
  bool Looks(std::string_view text) const { return Rest().starts_with(text); }
  char At(size_t i) const { return i < source_.size() ? source_[i] : '\0'; }

  void Advance(size_t bytes) {
    line_ += static_cast<int>(std::ranges::count(Rest().substr(0, bytes), '\n'));
    at_ += bytes;
  }
  void SkipSpace() { Advance(Rest().size() - Strip(Rest(), true, false).size()); }
  void Emit(TokenKind kind, std::string_view text, Value number = {}) {
    tokens_.push_back({kind, std::string(text), std::move(number), line_});
  }

  // Strips white space from the text before a tag that begins with `sign` ('-', '+' or another).
  std::string_view Stripped(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return Strip(text, false, true);
    if (sign == '+' || is_variable) return text;
    const size_t line_begin = text.rfind('\n') + 1;  // 0 if there is no newline
    const bool indents = line_begin > 0 || line_starting_;
    return indents && Strip(text.substr(line_begin), true, false).empty()
               ? text.substr(0, line_begin)
               : text;
  }

  void TextAndTag() {
    size_t tag = source_.find('{', at_);
    while (tag != source_.npos && std::string_view("%{#").find(At(tag + 1)) == std::string::npos)
      tag = source_.find('{', tag + 1);
    if (tag == source_.npos) {
      Emit(TokenKind::kText, Rest());
      return Advance(Rest().size());
    }
    const char kind = source_[tag + 1];
    const char sign = At(tag + 2);
    const auto text = Stripped(Rest().substr(0, tag - at_), sign, kind == '{');
    if (!text.empty()) Emit(TokenKind::kText, text);
    Advance(tag - at_);
    const int tag_line = line_;
    Advance(sign == '-' || sign == '+' ? 3 : 2);
    line_starting_ = false;
    if (kind == '#') {
      const bool at_end = Rest().empty();  // Jinja2 has no comment if {# is at the end
      while (!at_end && !End("#}")) {
        if (Rest().empty()) FailSyntax(tag_line, "this comment is not closed by #}");
        Advance(1);
      }
    } else {
      Tag(kind == '%' ? "{%" : "{{", kind == '%' ? "%}" : "}}", tag_line);
    }
  }

  // Parses the end of a tag: "%}", "+%}", or "-%}" with the white space after it. Only "%}" removes
  // a newline.
  bool End(std::string_view close) {
    const bool is_variable = close == "}}";
    if (Looks("-") && Rest().substr(1).starts_with(close)) {
      Advance(1 + close.size());
      SkipSpace();
    } else if (!is_variable && Looks("+") && Rest().substr(1).starts_with(close)) {
      Advance(1 + close.size());
    } else if (Looks(close)) {
      Advance(close.size());
      if (!is_variable && Looks("\n")) Advance(1);
    } else {
      return false;
    }
    line_starting_ = source_[at_ - 1] == '\n';
    return true;
  }

  void Tag(std::string_view begin, std::string_view close, int tag_line) {
    Emit(TokenKind::kOperator, begin);
    int brackets = 0;  // open brackets, inside which "}}" does not end a tag
    while (at_ < source_.size()) {
      const int line = line_;
      if (brackets == 0 && End(close)) {
        Emit(TokenKind::kOperator, close);
        tokens_.back().line = line;
        return;
      }
      size_t next = at_;
      if (IsSpace(NextCodePoint(source_, next))) {
        SkipSpace();
      } else if (IsDigitByte(source_[at_])) {
        Number();
      } else if (IsNameByte(source_[at_])) {
        while (next < source_.size() && IsNameByte(source_[next])) ++next;
        Emit(TokenKind::kName, Rest().substr(0, next - at_));
        Advance(next - at_);
      } else if (source_[at_] == '\'' || source_[at_] == '"') {
        String();
      } else {
        const auto* op =
            std::ranges::find_if(kOperators, [&](std::string_view known) { return Looks(known); });
        if (op == std::end(kOperators))
          FailSyntax(line_, "unexpected character " + Quoted(Rest().substr(0, next - at_)));
        if (*op == "(" || *op == "[" || *op == "{") ++brackets;
        if (*op == ")" || *op == "]" || *op == "}") --brackets;
        if (brackets < 0) FailSyntax(line_, fmt::format("unexpected '{}'", *op));
        Emit(TokenKind::kOperator, *op);
        Advance(op->size());
      }
    }
    FailSyntax(tag_line, fmt::format("this tag is not closed by {}", close));
  }

  size_t Digits(size_t at) const {
    while (IsDigitByte(At(at))) ++at;
    return at;
  }

  void Number() {
    size_t stop = Digits(at_);
    bool is_float = false;
    // A number directly after a dot is not a float: foo.0.1 means two subscripts.
    if (source_[at_ - 1] != '.') {
      if (At(stop) == '.' && IsDigitByte(At(stop + 1))) {
        stop = Digits(stop + 1);
        is_float = true;
      }
      const size_t exponent = At(stop + 1) == '+' || At(stop + 1) == '-' ? stop + 2 : stop + 1;
      if ((At(stop) | 0x20) == 'e' && IsDigitByte(At(exponent))) {
        stop = Digits(exponent);
        is_float = true;
      }
    }
    const std::string_view text = Rest().substr(0, stop - at_);
    if (IsNameByte(At(stop)))
      FailSyntax(line_, NotSupported("number", fmt::format("{}{}...", text, At(stop))));
    if (is_float) {
      Emit(TokenKind::kNumber, text, Value::Float(PythonFloat(text)));
      return Advance(stop - at_);
    }
    if (text.front() == '0' && text.find_first_not_of('0') != text.npos)
      FailSyntax(line_, fmt::format("{} is not a Python number, because it begins with 0", text));
    int64_t integer = 0;
    if (std::from_chars(text.begin(), text.end(), integer).ec != std::errc())
      FailSyntax(line_, NotSupported("number", text));
    Emit(TokenKind::kNumber, text, Value::Int(integer));
    Advance(stop - at_);
  }

  // Decodes a Python escape that begins at `i`, after the backslash.
  void Escape(size_t& i, std::string& out) const {
    static constexpr std::string_view kNames = "abfnrtv\\'\"";
    static constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"";
    const char c = source_[i++];
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (const size_t known = kNames.find(c); known != kNames.npos) {
      out += kValues[known];
    } else if (digits > 0) {
      uint32_t value = 0;
      const char* const begin = source_.data() + i;
      const char* const end = begin + std::min(digits, source_.size() - i);
      if (std::from_chars(begin, end, value, 16).ptr != begin + digits || value > 0x10FFFF ||
          (value >= 0xD800 && value < 0xE000))
        FailSyntax(line_, "malformed escape in a string");
      i += digits;
      AppendUtf8(value, out);
    } else if (c == 'N' || IsDigitByte(c)) {
      FailSyntax(line_, NotSupported("string escape", fmt::format("\\{}", c)));
    } else if (c != '\n') {
      out += '\\';
      out += c;
    }
  }

  void String() {
    const char quote = source_[at_];
    std::string value;
    size_t i = at_ + 1;
    while (i < source_.size() && source_[i] != quote) {
      if (source_[i] == '\\' && i + 1 < source_.size()) {
        Escape(++i, value);
      } else {
        value += source_[i++];
      }
    }
    if (i >= source_.size()) FailSyntax(line_, "this string is not closed");
    Emit(TokenKind::kString, value);
    Advance(i + 1 - at_);
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // the last text read ended with a newline
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
