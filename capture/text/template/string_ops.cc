// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/string_ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/utf8.h"
#include "capture/text/template/unicode.h"

namespace oscar::jinja {
namespace {

size_t PreviousStart(std::string_view text, size_t end) {
  do {
    --end;
  } while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80);
  return end;
}

bool EndsLine(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

}  // namespace

const std::string& StringArgument(const Value& value, std::string_view what) {
  if (value.is_undefined()) throw TemplateFailure(value.undefined_reason());
  if (value.is_string()) return value.as_string();
  throw TemplateFailure(fmt::format("{}: argument must be str, not {}", what, value.TypeName()));
}

std::string_view StripText(std::string_view text, const std::optional<std::string>& characters,
                           bool left, bool right) {
  const std::u32string set = characters ? DecodeUtf8(*characters) : std::u32string();
  const auto strips = [&](char32_t c) { return characters ? set.find(c) != set.npos : IsSpace(c); };
  while (left && !text.empty()) {
    size_t end = 0;
    if (!strips(NextCodePoint(text, end))) break;
    text.remove_prefix(end);
  }
  while (right && !text.empty()) {
    const size_t begin = PreviousStart(text, text.size());
    size_t position = begin;
    if (!strips(NextCodePoint(text, position))) break;
    text.remove_suffix(text.size() - begin);
  }
  return text;
}

std::vector<std::string_view> SplitAt(std::string_view text, std::string_view separator,
                                      int64_t limit, bool from_right) {
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t at = from_right ? text.rfind(separator) : text.find(separator);
    if (at == text.npos) break;
    if (from_right) {
      parts.push_back(text.substr(at + separator.size()));
      text = text.substr(0, at);
    } else {
      parts.push_back(text.substr(0, at));
      text.remove_prefix(at + separator.size());
    }
  }
  parts.push_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> SplitAtSpace(std::string_view text, int64_t limit, bool from_right) {
  std::vector<std::string_view> parts;
  text = StripText(text, std::nullopt, !from_right, from_right);
  while (!text.empty()) {
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      parts.push_back(text);  // its other end keeps its white space
      break;
    }
    if (from_right) {
      size_t begin = text.size();
      while (begin > 0) {
        const size_t before = PreviousStart(text, begin);
        size_t position = before;
        if (IsSpace(NextCodePoint(text, position))) break;
        begin = before;
      }
      parts.push_back(text.substr(begin));
      text = text.substr(0, begin);
    } else {
      size_t end = 0;
      while (end < text.size()) {
        size_t position = end;
        if (IsSpace(NextCodePoint(text, position))) break;
        end = position;
      }
      parts.push_back(text.substr(0, end));
      text.remove_prefix(end);
    }
    text = StripText(text, std::nullopt, !from_right, from_right);
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> Lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t at = i;
    const char32_t c = NextCodePoint(text, i);
    if (!EndsLine(c)) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(begin, (keep_ends ? i : at) - begin));
    begin = i;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::string ReplaceText(Session& session, std::string_view text, std::string_view old,
                        std::string_view replacement, int64_t count) {
  session.ChargeText(text.size());
  std::string out;
  size_t from = 0;
  for (int64_t done = 0; (count < 0 || done < count) && from <= text.size(); ++done) {
    const size_t at = old.empty() ? from : text.find(old, from);
    if (at == text.npos) break;
    session.ChargeText(replacement.size());
    if (out.size() > Session::kMaxTextBytes) session.ChargeText(out.size());
    out += text.substr(from, at - from);
    out += replacement;
    from = at + old.size();
    if (!old.empty()) continue;
    if (from == text.size()) return out;
    const size_t begin = from;
    NextCodePoint(text, from);
    out += text.substr(begin, from - begin);
  }
  return out.append(text.substr(std::min(from, text.size())));
}

bool IsLowerText(std::string_view text) {
  bool any = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, i);
    if (IsUpper(c) || IsTitle(c)) return false;
    any = any || IsLower(c);
  }
  return any;
}

bool IsUpperText(std::string_view text) {
  bool any = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, i);
    if (IsLower(c) || IsTitle(c)) return false;
    any = any || IsUpper(c);
  }
  return any;
}

}  // namespace oscar::jinja
