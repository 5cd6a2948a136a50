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

void AppendRepr(Session& session, const Value& value, std::string& out);

std::string FloatRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto end =
      std::to_chars(std::begin(buffer), std::end(buffer), value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));  // "-1.25e-07"
  const size_t e = text.find('e');
  const std::string sign = text.starts_with('-') ? "-" : "";
  std::string digits;
  for (const char c : text.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  const int exponent = std::stoi(std::string(text.substr(e + 1)));
  // Python's float_repr_style 'short': exponents from -4 to 15 are written out.
  if (exponent < -4 || exponent >= 16) {
    const std::string fraction = digits.size() > 1 ? "." + digits.substr(1) : "";
    return fmt::format("{}{}{}e{}{:02}", sign, digits[0], fraction, exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

void AppendSequence(Session& session, const Value& value, std::string& out) {
  if (value.kind() == SequenceKind::kRange)
    throw TemplateFailure(NotSupported("text of a value of type", "range"));
  const bool is_tuple = value.is_tuple();
  const bool is_view = !value.is_sequence();
  if (is_view) out += value.TypeName() + "(";
  out += is_tuple ? '(' : '[';
  for (const Value& item : value.items()) {
    if (&item != &value.items().front()) out += ", ";
    AppendRepr(session, item, out);
  }
  if (is_tuple && value.items().size() == 1) out += ',';
  out += is_tuple ? ')' : ']';
  if (is_view) out += ')';
}

void AppendRepr(Session& session, const Value& value, std::string& out) {
  const Session::Level level(session);
  session.Step();
  if (out.size() > Session::kMaxTextBytes) session.ChargeText(out.size());
  if (value.is_undefined()) {
    out += "Undefined";
  } else if (value.is_none()) {
    out += "None";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "True" : "False";
  } else if (value.is_int()) {
    out += std::to_string(value.as_int());
  } else if (value.is_big()) {
    out += value.big_digits();
  } else if (value.is_float()) {
    out += FloatRepr(value.as_double());
  } else if (value.is_string()) {
    session.ChargeText(value.as_string().size());
    const std::string quoted = StringRepr(value.as_string());
    out += value.is_markup() ? "Markup(" + quoted + ")" : quoted;
  } else if (value.is_items()) {
    AppendSequence(session, value, out);
  } else if (value.is_dict()) {
    out += '{';
    for (const auto& [key, item] : value.dict().items) {
      if (&key != &value.dict().items.front().first) out += ", ";
      AppendRepr(session, key, out);
      out += ": ";
      AppendRepr(session, item, out);
    }
    out += '}';
  } else {
    throw TemplateFailure(NotSupported("text of a value of type", value.TypeName()));
  }
}

void AppendEscape(char32_t c, std::string& out) {
  if (c < 0x10000) {
    out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    return;
  }
  const uint32_t offset = static_cast<uint32_t>(c) - 0x10000;
  out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (offset >> 10), 0xDC00 + (offset & 0x3FF));
}

void AppendJsonString(std::string_view text, bool ensure_ascii, std::string& out) {
  static constexpr std::string_view kNamed = "\"\\\n\r\t\f\b";
  static constexpr std::string_view kNames = "\"\\nrtfb";
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, i);
    const size_t named = c < 0x80 ? kNamed.find(static_cast<char>(c)) : kNamed.npos;
    if (named != kNamed.npos) {
      out += '\\';
      out += kNames[named];
    } else if (c < 0x20 || (ensure_ascii && c > 0x7E)) {
      AppendEscape(c, out);
    } else {
      AppendUtf8(c, out);
    }
  }
  out += '"';
}

std::string JsonNumber(const Value& value) {
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_int()) return std::to_string(value.as_int());
  if (value.is_big()) return value.big_digits();
  const double number = value.as_double();
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return FloatRepr(number);
}

class JsonWriter {
 public:
  JsonWriter(Session& session, const JsonStyle& style) : session_(session), style_(style) {}

  void Write(const Value& value) {
    const Session::Level level(session_);
    session_.Step();
    if (out.size() > Session::kMaxTextBytes) session_.ChargeText(out.size());
    if (value.is_none()) {
      out += "null";
    } else if (value.is_number() || value.is_big()) {
      out += JsonNumber(value);
    } else if (value.is_string()) {
      session_.ChargeText(value.as_string().size());
      AppendJsonString(value.as_string(), style_.ensure_ascii, out);
    } else if (value.is_sequence()) {
      WriteSequence(value.items());
    } else if (value.is_dict()) {
      WriteDict(value.dict());
    } else {
      throw TemplateFailure(
          fmt::format("Object of type {} is not JSON serializable", value.TypeName()));
    }
  }

  std::string out;

 private:
  void WriteSequence(const std::vector<Value>& items) {
    if (items.empty()) {
      out += "[]";
      return;
    }
    Open('[');
    for (const Value& item : items) {
      Separate(&item == &items.front());
      Write(item);
    }
    Close(']');
  }

  void WriteDict(const Dict& dict) {
    if (dict.items.empty()) {
      out += "{}";
      return;
    }
    std::vector<const std::pair<Value, Value>*> members;
    for (const auto& member : dict.items) members.push_back(&member);
    if (style_.sort_keys) {
      std::stable_sort(members.begin(), members.end(), [&](const auto* a, const auto* b) {
        return Less(session_, a->first, b->first);
      });
    }
    Open('{');
    for (const auto* member : members) {
      Separate(member == members.front());
      AppendJsonString(Key(member->first), style_.ensure_ascii, out);
      out += style_.key_separator;
      Write(member->second);
    }
    Close('}');
  }

  std::string Key(const Value& key) const {
    if (key.is_string()) return key.as_string();
    if (key.is_none()) return "null";
    if (key.is_number() || key.is_big()) return JsonNumber(key);
    throw TemplateFailure(
        fmt::format("keys must be str, int, float, bool or None, not {}", key.TypeName()));
  }

  void Open(char bracket) {
    out += bracket;
    ++depth_;
  }
  void Close(char bracket) {
    --depth_;
    NewLine();
    out += bracket;
  }
  void Separate(bool first) {
    if (!first) out += style_.item_separator;
    NewLine();
  }
  void NewLine() {
    if (!style_.indent) return;
    out += '\n';
    for (int i = 0; i < depth_; ++i) out += *style_.indent;
  }

  Session& session_;
  const JsonStyle& style_;
  int depth_ = 0;
};

}  // namespace

std::string StringRepr(std::string_view text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, i);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (IsPrintable(c)) {
      AppendUtf8(c, out);
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
  }
  return out + quote;
}

std::string Repr(Session& session, const Value& value) {
  std::string out;
  AppendRepr(session, value, out);
  return out;
}

std::string Str(Session& session, const Value& value) {
  if (value.is_string()) return value.as_string();
  if (value.is_undefined()) return {};
  return Repr(session, value);
}

std::string ToJson(Session& session, const Value& value, const JsonStyle& style) {
  JsonWriter writer(session, style);
  writer.Write(value);
  return std::move(writer.out);
}

}  // namespace oscar::jinja
