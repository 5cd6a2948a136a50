// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Methods of Python's str that give text back. Trap: split() without a separator splits at runs of
// white space and drops empty parts; split(" ") does neither.
#include <fmt/format.h>

#include <algorithm>

#include "capture/files/utf8.h"
#include "capture/text/template/format.h"
#include "capture/text/template/methods.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/string_ops.h"
#include "capture/text/template/unicode.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

// The result of a method of `self` is Markup if `self` is.
Value Like(Session& session, const Value& self, std::string text) {
  return session.String(std::move(text), self.is_markup());
}

// An argument as text: escaped if `self` is Markup and it is not.
std::string Escaped(const Value& self, const Value& argument, std::string_view what) {
  const std::string& text = StringArgument(argument, what);
  return self.is_markup() && !argument.is_markup() ? EscapeHtml(text) : text;
}

std::optional<std::string> Characters(const std::optional<Value>& argument, std::string_view what) {
  if (!argument || argument->is_none()) return std::nullopt;
  return StringArgument(*argument, what);
}

template <bool kLeft, bool kRight>
Value StripMethod(Session& session, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.Bind("strip", {"chars"}, 0);
  session.ChargeText(self.as_string().size());
  return Like(
      session, self,
      std::string(StripText(self.as_string(), Characters(bound[0], "strip()"), kLeft, kRight)));
}

template <std::u32string (*kMap)(std::u32string_view)>
Value CaseMethod(Session& session, const Value& self, const Arguments& arguments) {
  arguments.Bind("a case method", {}, 0);
  session.ChargeText(self.as_string().size());
  return Like(session, self, EncodeUtf8(kMap(DecodeUtf8(self.as_string()))));
}

template <bool kFromRight>
Value SplitMethod(Session& session, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.Bind("split", {"sep", "maxsplit"}, 0);
  const int64_t limit = bound[1] ? IntegerOf(*bound[1], "split()") : -1;
  session.ChargeText(self.as_string().size());
  std::vector<std::string_view> parts;
  if (!bound[0] || bound[0]->is_none()) {
    parts = SplitAtSpace(self.as_string(), limit, kFromRight);
  } else {
    const std::string& separator = StringArgument(*bound[0], "split()");
    if (separator.empty()) throw TemplateFailure("empty separator");
    parts = SplitAt(self.as_string(), separator, limit, kFromRight);
  }
  std::vector<Value> items;
  for (const std::string_view part : parts) items.push_back(Like(session, self, std::string(part)));
  return Value::List(std::move(items));
}

Value SplitLinesMethod(Session& session, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.Bind("splitlines", {"keepends"}, 0);
  std::vector<Value> items;
  for (const std::string_view line :
       Lines(self.as_string(), bound[0] && bound[0]->Truthy(session))) {
    items.push_back(Like(session, self, std::string(line)));
  }
  return Value::List(std::move(items));
}

template <bool kFromRight>
Value Partition(Session& session, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.Bind("partition", {"sep"}, 1);
  const std::string& separator = StringArgument(*bound[0], "partition()");
  if (separator.empty()) throw TemplateFailure("empty separator");
  const std::string& text = self.as_string();
  const size_t at = kFromRight ? text.rfind(separator) : text.find(separator);
  std::vector<std::string> parts = {text, "", ""};
  if (kFromRight) parts = {"", "", text};
  if (at != text.npos) parts = {text.substr(0, at), separator, text.substr(at + separator.size())};
  std::vector<Value> items;
  for (std::string& part : parts) items.push_back(Like(session, self, std::move(part)));
  return Value::Tuple(std::move(items));
}

Value ReplaceMethod(Session& session, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.Bind("replace", {"old", "new", "count"}, 2);
  const std::string& old = StringArgument(*bound[0], "replace()");
  const int64_t count = bound[2] ? IntegerOf(*bound[2], "replace()") : -1;
  return Like(
      session, self,
      ReplaceText(session, self.as_string(), old, Escaped(self, *bound[1], "replace()"), count));
}

Value JoinMethod(Session& session, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.Bind("join", {"iterable"}, 1);
  std::string out;
  int64_t i = 0;
  const Cursor cursor = Iterate(session, *bound[0]);
  for (Value item; cursor(&item); ++i) {
    if (!item.is_string()) {
      if (!self.is_markup()) {
        throw TemplateFailure(
            fmt::format("sequence item {}: expected str instance, {} found", i, item.TypeName()));
      }
      item = Value::String(Str(session, item));
    }
    if (i > 0) out += self.as_string();
    out += Escaped(self, item, "join()");
    session.ChargeText(item.as_string().size() + self.as_string().size());
    if (out.size() > Session::kMaxTextBytes) session.ChargeText(out.size());
  }
  return Like(session, self, std::move(out));
}

enum class Side { kLeft, kRight, kBoth };

template <Side kText>
Value Justify(Session& session, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.Bind("justify", {"width", "fillchar"}, 1);
  const int64_t width = IntegerOf(*bound[0], "width");
  const std::string fill = bound[1] ? StringArgument(*bound[1], "fillchar") : std::string(" ");
  if (CodePointCount(fill) != 1)
    throw TemplateFailure("The fill character must be exactly one character long");
  const auto length = static_cast<int64_t>(CodePointCount(self.as_string()));
  const int64_t pad = std::max<int64_t>(width - length, 0);
  if (pad > static_cast<int64_t>(Session::kMaxTextBytes / fill.size()))
    session.ChargeText(Session::kMaxTextBytes + 1);
  // CPython unicode_center: the odd one goes left if the width is odd.
  int64_t left = kText == Side::kLeft ? 0 : pad;
  if (kText == Side::kBoth) left = pad / 2 + (pad & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += self.as_string();
  for (int64_t i = left; i < pad; ++i) out += fill;
  return Like(session, self, std::move(out));
}

Value ZeroFillMethod(Session& session, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.Bind("zfill", {"width"}, 1);
  const std::string& text = self.as_string();
  const int64_t pad = IntegerOf(*bound[0], "width") - static_cast<int64_t>(CodePointCount(text));
  if (pad <= 0) return self;
  if (pad > static_cast<int64_t>(Session::kMaxTextBytes))
    session.ChargeText(Session::kMaxTextBytes + 1);
  const size_t sign = text.starts_with('+') || text.starts_with('-') ? 1 : 0;
  return Like(
      session, self,
      text.substr(0, sign) + std::string(static_cast<size_t>(pad), '0') + text.substr(sign));
}

Value RemovePrefixMethod(Session& session, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.Bind("removeprefix", {"prefix"}, 1);
  const std::string& prefix = StringArgument(*bound[0], "removeprefix()");
  const std::string& text = self.as_string();
  return text.starts_with(prefix) ? Like(session, self, text.substr(prefix.size())) : self;
}

Value RemoveSuffixMethod(Session& session, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.Bind("removesuffix", {"suffix"}, 1);
  const std::string& suffix = StringArgument(*bound[0], "removesuffix()");
  const std::string& text = self.as_string();
  return text.ends_with(suffix) ? Like(session, self, text.substr(0, text.size() - suffix.size()))
                                : self;
}

Value ExpandTabsMethod(Session& session, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.Bind("expandtabs", {"tabsize"}, 0);
  const int64_t size = std::min<int64_t>(bound[0] ? IntegerOf(*bound[0], "tabsize") : 8, 1024);
  std::string out;
  int64_t column = 0;
  for (size_t i = 0; i < self.as_string().size();) {
    const char32_t c = NextCodePoint(self.as_string(), i);
    if (c == '\t') {
      const int64_t pad = size > 0 ? size - column % size : 0;
      out.append(static_cast<size_t>(pad), ' ');
      column += pad;
      session.ChargeText(static_cast<size_t>(pad));
      continue;
    }
    AppendUtf8(c, out);
    column = c == '\n' || c == '\r' ? 0 : column + 1;
  }
  return Like(session, self, std::move(out));
}

Value FormatMethod(Session& session, const Value& self, const Arguments& arguments) {
  return BraceFormat(session, self, arguments);
}

}  // namespace

std::span<const MethodRow> StringMethods() {
  static constexpr MethodRow kMethods[] = {
      {"strip", StripMethod<true, true>},
      {"lstrip", StripMethod<true, false>},
      {"rstrip", StripMethod<false, true>},
      {"split", SplitMethod<false>},
      {"rsplit", SplitMethod<true>},
      {"splitlines", SplitLinesMethod},
      {"partition", Partition<false>},
      {"rpartition", Partition<true>},
      {"replace", ReplaceMethod},
      {"join", JoinMethod},
      {"lower", CaseMethod<Lower>},
      {"upper", CaseMethod<Upper>},
      {"title", CaseMethod<TitleCase>},
      {"capitalize", CaseMethod<Capitalize>},
      {"swapcase", CaseMethod<SwapCase>},
      {"casefold", CaseMethod<CaseFold>},
      {"ljust", Justify<Side::kLeft>},
      {"rjust", Justify<Side::kRight>},
      {"center", Justify<Side::kBoth>},
      {"zfill", ZeroFillMethod},
      {"removeprefix", RemovePrefixMethod},
      {"removesuffix", RemoveSuffixMethod},
      {"expandtabs", ExpandTabsMethod},
      {"format", FormatMethod},
      {"format_map", nullptr},
      {"encode", nullptr},
      {"translate", nullptr},
      {"maketrans", nullptr},
  };
  return kMethods;
}

}  // namespace oscar::jinja
