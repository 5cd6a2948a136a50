// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Methods of Python's str that ask something: find, count, startswith, isdigit. Trap: positions are
// in code points, and start and end are clipped like those of a slice.
#include <fmt/format.h>

#include <algorithm>

#include "capture/files/utf8.h"
#include "capture/text/template/methods.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/string_ops.h"
#include "capture/text/template/unicode.h"

namespace oscar::jinja {
namespace {

// The part of a text between two positions, and the position it begins at.
struct Window {
  std::string_view text;
  int64_t begin = 0;  // code points
  bool valid = true;  // false: begins behind the end, where nothing is found, "" neither
};

Window WindowOf(Session& session, const Value& self, const std::optional<Value>& start,
                const std::optional<Value>& end) {
  const std::string_view text = self.as_string();
  session.Step(1 + text.size() / Session::kBytesPerStep);
  const bool has_start = start && !start->is_none();
  const bool has_end = end && !end->is_none();
  if (!has_start && !has_end) return {text, 0, true};
  const auto size = static_cast<int64_t>(CodePointCount(text));
  const auto at = [&](const Value& value) {
    const int64_t index = IntegerOf(value, "position");
    return index < 0 ? std::max<int64_t>(index + size, 0) : index;
  };
  const int64_t begin = has_start ? at(*start) : 0;
  const int64_t stop = std::min(has_end ? at(*end) : size, size);
  if (begin > stop) return {{}, begin, false};
  size_t byte = 0;
  for (int64_t i = 0; i < begin; ++i) NextCodePoint(text, byte);
  const size_t first = byte;
  for (int64_t i = begin; i < stop; ++i) NextCodePoint(text, byte);
  return {text.substr(first, byte - first), begin, true};
}

template <bool kFromRight, bool kMustExist>
Value Find(Session& session, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.Bind("find", {"sub", "start", "end"}, 1);
  const std::string& sub = StringArgument(*bound[0], "find()");
  const Window window = WindowOf(session, self, bound[1], bound[2]);
  const size_t at = !window.valid ? std::string_view::npos
                    : kFromRight  ? window.text.rfind(sub)
                                  : window.text.find(sub);
  if (at != std::string_view::npos)
    return Value::Int(window.begin +
                      static_cast<int64_t>(CodePointCount(window.text.substr(0, at))));
  if (kMustExist) throw TemplateFailure("substring not found");
  return Value::Int(-1);
}

Value CountMethod(Session& session, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.Bind("count", {"sub", "start", "end"}, 1);
  const std::string& sub = StringArgument(*bound[0], "count()");
  const Window window = WindowOf(session, self, bound[1], bound[2]);
  if (!window.valid) return Value::Int(0);
  if (sub.empty()) return Value::Int(static_cast<int64_t>(CodePointCount(window.text)) + 1);
  int64_t count = 0;
  for (size_t at = 0; (at = window.text.find(sub, at)) != window.text.npos; at += sub.size())
    ++count;
  return Value::Int(count);
}

template <bool kStart>
Value Affix(Session& session, const Value& self, const Arguments& arguments) {
  const char* name = kStart ? "startswith" : "endswith";
  const auto bound = arguments.Bind(name, {"prefix", "start", "end"}, 1);
  const Window window = WindowOf(session, self, bound[1], bound[2]);
  std::vector<Value> affixes = {*bound[0]};
  if (bound[0]->is_tuple()) affixes = bound[0]->items();
  bool found = false;
  for (const Value& affix : affixes) {
    if (affix.is_undefined()) throw TemplateFailure(affix.undefined_reason());
    if (!affix.is_string()) {
      throw TemplateFailure(fmt::format("{} first arg must be str or a tuple of str, not {}", name,
                                        affix.TypeName()));
    }
    found = found || (window.valid && (kStart ? window.text.starts_with(affix.as_string())
                                              : window.text.ends_with(affix.as_string())));
  }
  return Value::Bool(found);
}

template <bool (*kTest)(char32_t)>
Value All(Session& session, const Value& self, const Arguments& arguments) {
  arguments.Bind("a predicate", {}, 0);
  session.ChargeText(self.as_string().size());
  const std::u32string text = DecodeUtf8(self.as_string());
  return Value::Bool(!text.empty() && std::ranges::all_of(text, kTest));
}

bool IsAlphanumeric(char32_t c) { return IsAlphabetic(c) || IsNumeric(c); }

Value AsciiOnly(Session&, const Value& self, const Arguments&) {
  return Value::Bool(IsAscii(self.as_string()));
}

Value AllPrintable(Session&, const Value& self, const Arguments&) {
  return Value::Bool(std::ranges::all_of(DecodeUtf8(self.as_string()), IsPrintable));
}

Value Identifier(Session&, const Value& self, const Arguments&) {
  const std::u32string text = DecodeUtf8(self.as_string());
  return Value::Bool(!text.empty() && !IsNumeric(text[0]) && std::ranges::all_of(text, IsWord));
}

Value LowerOnly(Session&, const Value& self, const Arguments&) {
  return Value::Bool(IsLowerText(self.as_string()));
}
Value UpperOnly(Session&, const Value& self, const Arguments&) {
  return Value::Bool(IsUpperText(self.as_string()));
}

Value TitleOnly(Session&, const Value& self, const Arguments&) {
  bool any = false;
  bool inside = false;
  for (const char32_t c : DecodeUtf8(self.as_string())) {
    const bool begins = IsUpper(c) || IsTitle(c);
    if ((begins && inside) || (IsLower(c) && !inside)) return Value::Bool(false);
    inside = IsCased(c);
    any = any || inside;
  }
  return Value::Bool(any);
}

}  // namespace

std::span<const MethodRow> StringPredicates() {
  static constexpr MethodRow kMethods[] = {
      {"find", Find<false, false>},     {"rfind", Find<true, false>},
      {"index", Find<false, true>},     {"rindex", Find<true, true>},
      {"count", CountMethod},           {"startswith", Affix<true>},
      {"endswith", Affix<false>},       {"isalpha", All<IsAlphabetic>},
      {"isalnum", All<IsAlphanumeric>}, {"isdecimal", All<IsDecimal>},
      {"isdigit", All<IsDigit>},        {"isnumeric", All<IsNumeric>},
      {"isspace", All<IsSpace>},        {"isascii", AsciiOnly},
      {"isprintable", AllPrintable},    {"isidentifier", Identifier},
      {"islower", LowerOnly},           {"isupper", UpperOnly},
      {"istitle", TitleOnly},
  };
  return kMethods;
}

}  // namespace oscar::jinja
