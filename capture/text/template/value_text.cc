// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "capture/files/utf8.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/unicode.h"

namespace oscar::jinja {
namespace {

constexpr size_t kMostBytesPerByte = 6;  // a NUL is "\u0000"

// fmt writes the same digits and exponents as Python's repr, except that it writes 1 for 1.0.
std::string FloatRepr(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_not_of("-0123456789") == text.npos) text += ".0";
  return text;
}

std::string JsonString(std::string_view text, bool ensure_ascii) {
  static constexpr std::string_view kNamed = "\"\\\n\r\t\f\b";
  static constexpr std::string_view kNames = "\"\\nrtfb";
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, i);
    const auto code = static_cast<uint32_t>(c);
    const size_t named = c < 0x80 ? kNamed.find(static_cast<char>(c)) : kNamed.npos;
    if (named != kNamed.npos) {
      out += '\\';
      out += kNames[named];
    } else if (c >= 0x20 && (!ensure_ascii || c < 0x7F)) {
      AppendUtf8(c, out);
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF));
    }
  }
  return out + '"';
}

class Writer {
 public:
  // Writes Python's repr if there is no style.
  Writer(Session& session, const JsonStyle* json) : session_(session), json_(json) {}

  void Write(const Value& value) {
    const Session::Level level(session_);
    session_.Step();
    const bool is_view = value.is_items() && value.kind() > SequenceKind::kRange;
    if (value.is_string()) {
      session_.ChargeMemory(kMostBytesPerByte * value.as_string().size());
      Put(json_ != nullptr    ? JsonString(value.as_string(), json_->ensure_ascii)
          : value.is_markup() ? "Markup(" + StringRepr(value.as_string()) + ")"
                              : StringRepr(value.as_string()));
    } else if (value.is_sequence() || (is_view && json_ == nullptr)) {
      if (is_view) Put(value.TypeName() + "(");
      WriteItems(value);
      if (is_view) Put(")");
    } else if (value.is_dict()) {
      WriteDict(value.dict());
    } else if (value.is_none() || value.is_number() || value.is_big()) {
      Put(Scalar(value));
    } else if (json_ != nullptr) {
      throw TemplateFailure(
          fmt::format("Object of type {} is not JSON serializable", value.TypeName()));
    } else if (value.is_undefined()) {
      Put("Undefined");
    } else {
      throw TemplateFailure(NotSupported("conversion to text of the type", value.TypeName()));
    }
  }

  std::string out;

 private:
  void Put(std::string_view text) { session_.Append(text, out); }

  std::string Scalar(const Value& value) const {
    const bool python = json_ == nullptr;
    if (value.is_none()) return python ? "None" : "null";
    if (value.is_bool())
      return value.as_bool() ? (python ? "True" : "true") : (python ? "False" : "false");
    if (value.is_int()) return std::to_string(value.as_int());
    if (value.is_big()) return value.big_digits();
    const double number = value.as_double();
    if (python || std::isfinite(number)) return FloatRepr(number);
    return std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
  }

  void WriteItems(const Value& value) {
    const bool parentheses = value.is_tuple() && json_ == nullptr;
    Open(parentheses ? "(" : "[");
    for (const Value& item : value.items()) {
      Separate(&item == &value.items().front());
      Write(item);
    }
    if (parentheses && value.items().size() == 1) Put(",");
    Close(parentheses ? ")" : "]", value.items().empty());
  }

  void WriteDict(const Dict& dict) {
    std::vector<const std::pair<Value, Value>*> members;
    for (const auto& member : dict.items) members.push_back(&member);
    if (json_ != nullptr && json_->sort_keys) {
      std::ranges::stable_sort(members, [&](const auto* a, const auto* b) {
        return Less(session_, a->first, b->first);
      });
    }
    Open("{");
    for (const auto* member : members) {
      Separate(member == members.front());
      const Value& key = member->first;
      if (json_ != nullptr && !key.is_string()) {
        if (!(key.is_none() || key.is_number() || key.is_big())) {
          throw TemplateFailure(
              fmt::format("keys must be str, int, float, bool or None, not {}", key.TypeName()));
        }
        Put('"' + Scalar(key) + '"');
      } else {
        Write(key);
      }
      Put(json_ != nullptr ? json_->key_separator : ": ");
      Write(member->second);
    }
    Close("}", members.empty());
  }

  void Open(std::string_view bracket) {
    Put(bracket);
    ++depth_;
  }
  void Separate(bool first) {
    if (!first) Put(json_ != nullptr ? json_->item_separator : ", ");
    NewLine();
  }
  void Close(std::string_view bracket, bool empty) {
    --depth_;
    if (!empty) NewLine();
    Put(bracket);
  }
  void NewLine() {
    if (json_ == nullptr || !json_->indent) return;
    Put("\n");
    for (int i = 0; i < depth_; ++i) Put(*json_->indent);
  }

  Session& session_;
  const JsonStyle* json_;
  int depth_ = 0;
};

// Returns the argument that a field of str.format names; `next` counts fields without a name.
const Value& Field(std::string_view name, const Arguments& arguments, size_t& next) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(name.begin(), name.end(), index);
  if (name.empty() || (error == std::errc() && end == name.end())) {
    if (name.empty()) index = next++;
    if (index < arguments.positional.size()) return arguments.positional[index];
    throw TemplateFailure(
        fmt::format("Replacement index {} out of range for positional args tuple", index));
  }
  if (name.find_first_of(".[!:{") != name.npos)
    throw TemplateFailure(NotSupported("format", fmt::format("{{{}}}", name)));
  const auto found =
      std::ranges::find(arguments.named, name, [](const auto& row) { return row.first; });
  if (found == arguments.named.end()) throw TemplateFailure(fmt::format("KeyError: '{}'", name));
  return found->second;
}

}  // namespace

std::string StringRepr(std::string_view text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, i);
    const auto code = static_cast<uint32_t>(c);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += {'\\', static_cast<char>(c)};
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (IsPrintable(c)) {
      AppendUtf8(c, out);
    } else {
      out += code < 0x100     ? fmt::format("\\x{:02x}", code)
             : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
    }
  }
  return out + quote;
}

std::string Repr(Session& session, const Value& value) {
  Writer writer(session, nullptr);
  writer.Write(value);
  return std::move(writer.out);
}

std::string Str(Session& session, const Value& value) {
  if (value.is_string()) return value.as_string();
  return value.is_undefined() ? "" : Repr(session, value);
}

std::string ToJson(Session& session, const Value& value, const JsonStyle& style) {
  Writer writer(session, &style);
  writer.Write(value);
  return std::move(writer.out);
}

Value BraceFormat(Session& session, const Value& format, const Arguments& arguments) {
  const std::string_view text = format.as_string();
  size_t next = 0;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t brace = std::min(text.find_first_of("{}", at), text.size());
    session.Append(text.substr(at, brace - at), out);
    if (brace == text.size()) break;
    const char c = text[brace];
    at = brace + 2;
    if (brace + 1 < text.size() && text[brace + 1] == c) {
      out += c;
      continue;
    }
    const size_t end = text.find('}', brace + 1);
    if (c == '}' || end == text.npos)
      throw TemplateFailure(fmt::format("Single '{}' encountered in format string", c));
    const Value& value = Field(text.substr(brace + 1, end - brace - 1), arguments, next);
    const bool escapes = format.is_markup() && !value.is_markup();
    session.Append(escapes ? EscapeHtml(session, Str(session, value)) : Str(session, value), out);
    at = end + 1;
  }
  return session.String(std::move(out), format.is_markup());
}

}  // namespace oscar::jinja
