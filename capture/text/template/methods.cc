// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The methods of Python's built-in types: s.strip(), d.items(), l.index(x). Traps: positions are in
// code points. split() without a separator splits at runs of white space and drops empty parts;
// split(" ") does neither. Methods that would change a list or dict are undefined values, as in
// Jinja's sandbox, so calling them fails.
#include <fmt/format.h>

#include <algorithm>

#include "capture/files/utf8.h"
#include "capture/text/template/functions.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/unicode.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

// Returns an argument as text, escaped if `self` is marked as safe and the argument is not.
std::string Escaped(const Call& c, const Value& argument) {
  const std::string& text = TextOf(argument, c.name);
  return c.self.is_markup() && !argument.is_markup() ? EscapeHtml(c.session, text) : text;
}

template <bool kLeft, bool kRight>
Value StripMethod(const Call& c) {
  const std::string& text = c.self.as_string();
  return c.Like(std::string(Strip(text, kLeft, kRight, StripSet(c, text))));
}

template <std::string (*kMap)(std::string_view)>
Value CaseMethod(const Call& c) {
  c.session.ChargeWide(c.self.as_string().size());
  return c.Like(kMap(c.self.as_string()));
}

struct Cut {
  size_t at, size;  // bytes
};
// Returns the next place to cut `text`: at the separator, or at white space without a separator.
std::optional<Cut> NextCut(std::string_view text, const std::string* separator, bool from_right) {
  if (separator != nullptr) {
    const size_t at = from_right ? text.rfind(*separator) : text.find(*separator);
    return at == text.npos ? std::nullopt : std::optional(Cut{at, separator->size()});
  }
  for (size_t i = 0; i < text.size();) {
    const size_t at = i;
    if (IsSpace(NextCodePoint(text, i))) return Cut{at, i - at};
  }
  return std::nullopt;
}

template <bool kFromRight>
Value Split(const Call& c) {
  const std::string* separator = c.Has(0) ? &c.Text(0) : nullptr;
  const int64_t limit = c.Integer(1, -1);
  if (kFromRight && separator == nullptr)
    throw TemplateFailure(fmt::format("'{}' is supported only with a separator", c.name));
  if (separator != nullptr && separator->empty()) throw TemplateFailure("empty separator");
  std::string_view text = c.self.as_string();
  c.session.ChargeSearch(text.size(), separator != nullptr ? separator->size() : 1);
  const auto strip = [&] {
    if (separator == nullptr) text = Strip(text, true, false);
  };
  strip();
  std::vector<Value> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const auto cut = NextCut(text, separator, kFromRight);
    if (!cut) break;
    const std::string_view left = text.substr(0, cut->at);
    const std::string_view right = text.substr(cut->at + cut->size);
    parts.push_back(c.Like(std::string(kFromRight ? right : left)));
    text = kFromRight ? left : right;
    strip();
  }
  if (separator != nullptr || !text.empty()) parts.push_back(c.Like(std::string(text)));
  if (kFromRight) std::ranges::reverse(parts);
  return Value::List(std::move(parts));
}

Value ReplaceMethod(const Call& c) {
  return c.Like(ReplaceText(c.session, c.self.as_string(), c.Text(0), Escaped(c, *c.bound[1]),
                            c.Integer(2, -1)));
}

Value JoinMethod(const Call& c) {
  std::string out;
  int64_t i = 0;
  const Cursor cursor = Iterate(c.session, *c.bound[0]);
  for (Value item; cursor(&item); ++i) {
    if (!item.is_string()) {
      throw TemplateFailure(
          fmt::format("sequence item {}: expected str instance, {} found", i, item.TypeName()));
    }
    if (i > 0) c.session.Append(c.self.as_string(), out);
    c.session.Append(Escaped(c, item), out);
  }
  return c.Like(std::move(out));
}

template <bool kFromRight, bool kMustExist>
Value Find(const Call& c) {
  const std::string& sub = c.Text(0);
  const std::string_view text = c.self.as_string();
  c.session.ChargeSearch(text.size(), sub.size());
  const size_t at = kFromRight ? text.rfind(sub) : text.find(sub);
  if (at != text.npos) return Value::Int(static_cast<int64_t>(CodePointCount(text.substr(0, at))));
  if (kMustExist) throw TemplateFailure("substring not found");
  return Value::Int(-1);
}

Value CountText(const Call& c) {
  const std::string& sub = c.Text(0);
  const std::string& text = c.self.as_string();
  if (sub.empty()) return Value::Int(static_cast<int64_t>(CodePointCount(text)) + 1);
  c.session.ChargeSearch(text.size(), sub.size());
  int64_t count = 0;
  for (size_t at = 0; (at = text.find(sub, at)) != text.npos; at += sub.size()) ++count;
  return Value::Int(count);
}

template <bool kStart>
Value Affix(const Call& c) {
  const std::string& text = c.self.as_string();
  std::vector<Value> affixes = {*c.bound[0]};
  if (affixes[0].is_tuple()) affixes = c.bound[0]->items();
  bool found = false;
  for (const Value& affix : affixes) {
    const std::string& wanted = TextOf(affix, c.name);
    c.session.ChargeText(wanted.size());
    found = found || (kStart ? text.starts_with(wanted) : text.ends_with(wanted));
  }
  return Value::Bool(found);
}

template <bool kAtStart>
Value RemoveAffix(const Call& c) {
  const std::string& text = c.self.as_string();
  const std::string& affix = c.Text(0);
  if (!(kAtStart ? text.starts_with(affix) : text.ends_with(affix))) return c.self;
  return c.Like(text.substr(kAtStart ? affix.size() : 0, text.size() - affix.size()));
}

Value IsDigit(const Call& c) {
  const std::string& text = c.self.as_string();
  if (std::ranges::any_of(text, [](char x) { return (x & 0x80) != 0; }))
    throw TemplateFailure(fmt::format("'{}' is supported only for ASCII text", c.name));
  return Value::Bool(!text.empty() && text.find_first_not_of("0123456789") == text.npos);
}

constexpr FunctionRow<Value> kTextMethods[] = {
    {"capitalize", CaseMethod<Capitalize>},
    {"count", CountText, "sub -start -end", 1},
    {"endswith", Affix<false>, "suffix -start -end", 1},
    {"find", Find<false, false>, "sub -start -end", 1},
    {"format", [](const Call& c) { return BraceFormat(c.session, c.self, c.given); }, "*"},
    {"index", Find<false, true>, "sub -start -end", 1},
    {"isdigit", IsDigit},
    {"join", JoinMethod, "iterable", 1},
    {"lower", CaseMethod<Lower>},
    {"lstrip", StripMethod<true, false>, "chars"},
    {"removeprefix", RemoveAffix<true>, "prefix", 1},
    {"removesuffix", RemoveAffix<false>, "suffix", 1},
    {"replace", ReplaceMethod, "old new count", 2},
    {"rfind", Find<true, false>, "sub -start -end", 1},
    {"rsplit", Split<true>, "sep maxsplit"},
    {"rstrip", StripMethod<false, true>, "chars"},
    {"split", Split<false>, "sep maxsplit"},
    {"splitlines",
     [](const Call& c) { return Value::List(SplitLines(c.session, c.self, c.Flag(0))); },
     "keepends"},
    {"startswith", Affix<true>, "prefix -start -end", 1},
    {"strip", StripMethod<true, true>, "chars"},
    {"title", CaseMethod<Title>},
    {"upper", CaseMethod<Upper>},
};
constexpr std::string_view kRefusedOfText[] = {
    "casefold",   "isalnum",   "isalpha",      "isdecimal",   "islower", "isnumeric", "isspace",
    "isupper",    "partition", "rindex",       "rpartition",  "center",  "encode",    "expandtabs",
    "format_map", "isascii",   "isidentifier", "isprintable", "istitle", "ljust",     "maketrans",
    "rjust",      "swapcase",  "translate",    "zfill"};

template <SequenceKind kKind>
Value DictPart(const Call& c) {
  std::vector<Value> items;
  for (const auto& [key, value] : c.self.dict().items) {
    c.session.ChargeItems(3);
    items.push_back(kKind == SequenceKind::kKeys     ? key
                    : kKind == SequenceKind::kValues ? value
                                                     : Value::Tuple({key, value}));
  }
  return Value::List(std::move(items), kKind);
}

Value DictGet(const Call& c) {
  ChargeKey(c.session, *c.bound[0]);
  const Value* found = c.self.dict().Find(*c.bound[0]);
  return found != nullptr ? *found : c.bound[1].value_or(Value::None());
}

Value Copy(const Call& c) { return c.self; }

constexpr FunctionRow<Value> kDictMethods[] = {
    {"copy", Copy},
    {"get", DictGet, "key default", 1},
    {"items", DictPart<SequenceKind::kItems>},
    {"keys", DictPart<SequenceKind::kKeys>},
    {"values", DictPart<SequenceKind::kValues>},
};
constexpr std::string_view kRefusedOfDict[] = {"fromkeys"};
constexpr std::string_view kDictMutators[] = {"clear", "pop", "popitem", "setdefault", "update"};

Value CountItems(const Call& c) {
  return Value::Int(std::ranges::count_if(
      c.self.items(), [&](const Value& item) { return Equal(c.session, item, *c.bound[0]); }));
}

Value IndexOfItem(const Call& c) {
  const std::vector<Value>& items = c.self.items();
  for (size_t i = 0; i < items.size(); ++i) {
    if (Equal(c.session, items[i], *c.bound[0])) return Value::Int(static_cast<int64_t>(i));
  }
  throw TemplateFailure(fmt::format("a value is not in the {}", c.self.TypeName()));
}

constexpr FunctionRow<Value> kListMethods[] = {
    {"copy", Copy}, {"count", CountItems, "value", 1}, {"index", IndexOfItem, "value", 1}};
constexpr FunctionRow<Value> kTupleMethods[] = {{"count", CountItems, "value", 1},
                                                {"index", IndexOfItem, "value", 1}};
constexpr std::string_view kListMutators[] = {"append", "clear",  "extend",  "insert",
                                              "pop",    "remove", "reverse", "sort"};
constexpr std::string_view kRefusedOfRange[] = {"count", "index", "start", "step", "stop"};
constexpr std::string_view kRefusedOfView[] = {"isdisjoint", "mapping"};
constexpr std::string_view kRefusedOfNumbers[] = {
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
    "from_bytes",       "fromhex",   "hex",        "imag",      "is_integer",
    "numerator",        "real",      "to_bytes"};

// The methods of one type; `unsafe` methods change the value.
struct TypeMethods {
  std::span<const FunctionRow<Value>> rows;
  std::span<const std::string_view> refused, unsafe;
};

TypeMethods MethodsOf(const Value& value) {
  if (value.is_string()) return {kTextMethods, kRefusedOfText, {}};
  if (value.is_dict()) return {kDictMethods, kRefusedOfDict, kDictMutators};
  if (value.is_list()) return {kListMethods, {}, kListMutators};
  if (value.is_tuple()) return {kTupleMethods, {}, {}};
  if (value.is_items() && value.kind() == SequenceKind::kRange) return {{}, kRefusedOfRange, {}};
  if (value.is_items()) return {{}, kRefusedOfView, {}};
  if (value.is_number() || value.is_big()) return {{}, kRefusedOfNumbers, {}};
  return {};
}

bool EndsLine(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

}  // namespace

std::vector<Value> SplitLines(Session& session, const Value& value, bool keep_ends) {
  const std::string& text = value.as_string();
  std::vector<Value> lines;
  size_t begin = 0;
  const auto add = [&](size_t end) {
    lines.push_back(session.String(text.substr(begin, end - begin), value.is_markup()));
  };
  for (size_t i = 0; i < text.size();) {
    const size_t at = i;
    const char32_t c = NextCodePoint(text, i);
    if (!EndsLine(c)) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    add(keep_ends ? i : at);
    begin = i;
  }
  if (begin < text.size()) add(text.size());
  return lines;
}

std::string ReplaceText(Session& session, std::string_view text, std::string_view old,
                        std::string_view replacement, int64_t count) {
  session.ChargeSearch(text.size(), old.size());
  std::string out;
  for (; count != 0 && !text.empty(); --count) {
    const size_t at = old.empty() ? 0 : text.find(old);
    if (at == text.npos) break;
    session.Append(text.substr(0, at), out);
    session.Append(replacement, out);
    // An empty text matches before each character, and after the last one.
    const size_t kept = old.empty() ? ByteOffset(text, 1) : 0;
    out += text.substr(at, kept);
    text.remove_prefix(at + old.size() + kept);
  }
  if (old.empty() && text.empty() && count != 0) session.Append(replacement, out);
  session.Append(text, out);
  return out;
}

std::optional<Value> FindMethod(const Value& value, std::string_view name) {
  const TypeMethods methods = MethodsOf(value);
  if (const auto* row = FindRow<Value>(methods.rows, name)) {
    return Value::Of(std::make_shared<Function>(
        [row, value](Session& session, const Arguments& arguments) {
          session.ChargeText(value.is_string() ? value.as_string().size() : 0);
          return Invoke(*row, session, value, arguments);
        },
        value.depth()));
  }
  if (std::ranges::find(methods.refused, name) != methods.refused.end())
    throw TemplateFailure(NotSupported(fmt::format("'{}' attribute", value.TypeName()), name));
  if (std::ranges::find(methods.unsafe, name) == methods.unsafe.end()) return std::nullopt;
  return Value::Undefined(
      fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, value.TypeName()));
}

}  // namespace oscar::jinja
