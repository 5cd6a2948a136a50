// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The filters (x | trim). Traps: most filters take any value and convert it to text first. map and
// select are lazy, so an error in an item appears when that item is read. Sorting ignores case.
// tojson works as in transformers, because Jinja's own tojson escapes HTML.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "capture/text/template/functions.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/unicode.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

constexpr int64_t kMaxIndent = 1000;

std::string TextOfSelf(const Call& c) {
  std::string text = Str(c.session, c.self);
  c.session.ChargeText(text.size());
  return text;
}

std::string WideTextOfSelf(const Call& c) {
  std::string text = TextOfSelf(c);
  c.session.ChargeWide(text.size());
  return text;
}

// Returns the value inside `item` that `attribute` selects: a path such as "a.0.b", or an integer
// (Jinja2 filters.py, make_attrgetter). If a value on the path is undefined, `fallback` replaces
// it, if given.
Value ReadPath(Session& session, Value item, const Value& attribute,
               const std::optional<Value>& fallback = {}) {
  const auto read = [&](const Value& part) {
    item = GetItem(session, item, part);
    if (fallback && item.is_undefined()) item = *fallback;
  };
  if (!attribute.is_string()) {
    read(attribute);
    return item;
  }
  std::string_view rest = attribute.as_string();
  for (bool more = true; more;) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    int64_t index = 0;
    const auto [end, error] = std::from_chars(part.begin(), part.end(), index);
    const bool is_index = error == std::errc() && end == part.end() && part[0] != '-';
    read(is_index ? Value::Int(index) : Value::String(std::string(part)));
    more = dot < rest.size();
    if (more) rest.remove_prefix(dot + 1);
  }
  return item;
}

Value LazyItems(std::vector<Value> items) {
  const int depth = Value::List(items).depth();
  return Value::Of(std::make_shared<Generator>(
      [items = std::move(items), i = size_t{0}](Value* item) mutable {
        if (i == items.size()) return false;
        *item = items[i++];
        return true;
      },
      depth));
}

// `transform` changes an item, or returns false to omit it.
Value LazyOver(const Call& c, std::function<bool(Value*)> transform) {
  if (!c.self.Truthy()) return LazyItems({});
  // Iteration begins when the first item is read.
  return Value::Of(std::make_shared<Generator>(
      [&session = c.session, value = c.self, transform = std::move(transform),
       cursor = Cursor()](Value* item) mutable {
        const Session::Level level(session);
        if (!cursor) cursor = Iterate(session, value);
        while (cursor(item)) {
          session.Step();
          if (transform(item)) return true;
        }
        return false;
      },
      c.self.depth()));
}

// Removes the first positional argument, which is a name, and returns it.
std::string TakeName(Arguments& arguments, std::string_view filter) {
  std::string name = TextOf(arguments.positional.front(), filter);
  arguments.positional.erase(arguments.positional.begin());
  return name;
}

Value Map(const Call& c) {
  Session& session = c.session;
  if (c.given.positional.empty()) {
    const Call named = Bind(session, c.name, c.self, c.given, "attribute default", 1);
    std::optional<Value> fallback;
    if (named.Has(1)) fallback = named.bound[1];
    return LazyOver(c, [&session, attribute = *named.bound[0], fallback](Value* item) {
      *item = ReadPath(session, *item, attribute, fallback);
      return true;
    });
  }
  Arguments rest = c.given;
  const std::string name = TakeName(rest, c.name);
  return LazyOver(c, [&session, name, rest](Value* item) {
    *item = CallFilter(session, name, *item, rest);
    return true;
  });
}

template <bool kKeep, bool kByAttribute>
Value Select(const Call& c) {
  Arguments rest = c.given;
  std::optional<Value> attribute;
  if (kByAttribute) {
    if (rest.positional.empty()) throw TemplateFailure("Missing parameter for attribute name");
    attribute = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
  }
  std::optional<std::string> test;
  if (!rest.positional.empty()) test = TakeName(rest, c.name);
  return LazyOver(c, [&session = c.session, attribute, test, rest](Value* item) {
    const Value read = attribute ? ReadPath(session, *item, *attribute) : *item;
    return (test ? CallTest(session, *test, read, rest) : read.Truthy()) == kKeep;
  });
}

// Returns the sort key of an item: itself or its attribute, with text in lower case.
Value KeyOf(const Call& c, const Value& item, const std::optional<Value>& attribute,
            bool case_sensitive) {
  if (attribute && attribute->is_string() && attribute->as_string().find(',') != std::string::npos)
    throw TemplateFailure(NotSupported("attribute list", attribute->as_string()));
  Value key = attribute && !attribute->is_none() ? ReadPath(c.session, item, *attribute) : item;
  if (case_sensitive || !key.is_string()) return key;
  c.session.ChargeWide(key.as_string().size());
  return c.session.String(Lower(key.as_string()));
}

using Keyed = std::pair<Value, Value>;  // first: key, second: item

// Python's `reverse` is an integer, so other truthy or falsy values are refused.
Value Sorted(const Call& c, std::vector<Keyed> keyed, size_t reverse_parameter) {
  const bool reverse = c.Integer(reverse_parameter, 0) != 0;
  std::ranges::stable_sort(keyed, [&](const Keyed& a, const Keyed& b) {
    return reverse ? Less(c.session, b.first, a.first) : Less(c.session, a.first, b.first);
  });
  std::vector<Value> items;
  for (Keyed& entry : keyed) items.push_back(std::move(entry.second));
  return Value::List(std::move(items));
}

// As in Jinja2, keys are lists. Equal keys, even undefined ones, are not compared further.
Value Sort(const Call& c) {
  std::vector<Keyed> keyed;
  for (const Value& item : ToVector(c.session, c.self)) {
    c.session.ChargeItems(3);  // the key's list, its element, and the item
    keyed.emplace_back(Value::List({KeyOf(c, item, c.bound[2], c.Flag(1))}), item);
  }
  return Sorted(c, std::move(keyed), 0);
}

Value DictSort(const Call& c) {
  if (!c.self.Known().is_dict())
    throw TemplateFailure(fmt::format("'{}' object has no attribute 'items'", c.self.TypeName()));
  std::vector<Keyed> keyed;
  for (const auto& [key, item] : c.self.dict().items) {
    c.session.ChargeItems(4);
    keyed.emplace_back(KeyOf(c, key, {}, c.Flag(0)), Value::Tuple({key, item}));
  }
  return Sorted(c, std::move(keyed), 2);
}

Value Unique(const Call& c) {
  Dict seen;
  std::vector<Value> items;
  for (const Value& item : ToVector(c.session, c.self)) {
    const Value key = KeyOf(c, item, c.bound[1], c.Flag(0));
    ChargeKey(c.session, key);
    if (seen.Find(key) != nullptr) continue;
    seen.Set(key, Value::None());
    items.push_back(item);
  }
  return LazyItems(std::move(items));
}

Value LengthFilter(const Call& c) {
  if (const auto length = Length(c.session, c.self)) return Value::Int(*length);
  throw TemplateFailure(fmt::format("object of type '{}' has no len()", c.self.TypeName()));
}

Value First(const Call& c) {
  Value item;
  if (Iterate(c.session, c.self)(&item)) return item;
  return Value::Undefined("No first item, sequence was empty.");
}

Value Last(const Call& c) {
  if (c.self.is_object())
    throw TemplateFailure(fmt::format("'{}' object is not reversible", c.self.TypeName()));
  const std::vector<Value> items = ToVector(c.session, c.self);
  return items.empty() ? Value::Undefined("No last item, sequence was empty.") : items.back();
}

Value Reverse(const Call& c) {
  if (c.self.is_string())
    return Slice(c.session, c.self, Value::None(), Value::None(), Value::Int(-1));
  std::vector<Value> items = ToVector(c.session, c.self);
  std::ranges::reverse(items);
  return c.self.is_object() ? Value::List(std::move(items)) : LazyItems(std::move(items));
}

Value Join(const Call& c) {
  const std::string separator = c.bound[0] ? Str(c.session, *c.bound[0]) : "";
  std::string out;
  bool first = true;
  const Cursor cursor = Iterate(c.session, c.self);
  for (Value item; cursor(&item); first = false) {
    if (!first) c.session.Append(separator, out);
    c.session.Append(Str(c.session, c.Has(1) ? ReadPath(c.session, item, *c.bound[1]) : item), out);
  }
  return Value::String(std::move(out));
}

Value Default(const Call& c) {
  const bool replaces = c.self.is_undefined() || (c.Flag(1) && !c.self.Truthy());
  return replaces ? c.bound[0].value_or(Value::String("")) : c.self;
}

Value Items(const Call& c) {
  if (!c.self.is_undefined() && !c.self.is_dict())
    throw TemplateFailure("Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  if (c.self.is_dict()) {
    c.session.ChargeItems(3 * c.self.dict().items.size());
    for (const auto& [key, item] : c.self.dict().items) pairs.push_back(Value::Tuple({key, item}));
  }
  return LazyItems(std::move(pairs));
}

// Words begin after - ( { [ < and white space, unlike in str.title.
Value TitleFilter(const Call& c) {
  const std::u32string text = DecodeUtf8(WideTextOfSelf(c));
  const auto separates = [](char32_t x) {
    return IsSpace(x) || std::u32string_view(U"-({[<").find(x) != std::u32string_view::npos;
  };
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && separates(text[end]) == separates(text[i])) ++end;
    out += Upper(EncodeUtf8(text.substr(i, 1)));
    out += Lower(EncodeUtf8(text.substr(i + 1, end - i - 1)));
    i = end;
  }
  return c.Like(std::move(out));
}

// Returns the indentation per level for indent and tojson: spaces, or the text itself.
std::string IndentOf(const Call& c, size_t i) {
  if (c.bound[i]->is_string()) return c.Text(i);
  return std::string(static_cast<size_t>(std::clamp<int64_t>(c.Integer(i, 0), 0, kMaxIndent)), ' ');
}

Value Indent(const Call& c) {
  TextOf(c.self, c.name);
  const std::string indent = c.bound[0] ? IndentOf(c, 0) : std::string(4, ' ');
  std::string out = c.Flag(1) ? indent : "";
  std::vector<Value> lines = SplitLines(c.session, Value::String(c.self.as_string() + "\n"), false);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i].as_string();
    if (i > 0) out += '\n';
    if (i > 0 && (c.Flag(2) || !line.empty())) c.session.Append(indent, out);
    c.session.Append(line, out);
  }
  return c.Like(std::move(out));
}

Value Replace(const Call& c) {
  return Value::String(ReplaceText(c.session, TextOfSelf(c), Str(c.session, *c.bound[0]),
                                   Str(c.session, *c.bound[1]), c.Has(2) ? c.Integer(2, 0) : -1));
}

// Follows transformers (chat_template_utils.py): json.dumps with ensure_ascii off.
Value ToJsonFilter(const Call& c) {
  JsonStyle style;
  style.ensure_ascii = c.Flag(0);
  style.sort_keys = c.Flag(3);
  if (c.Has(1)) {
    style.item_separator = ",";
    style.indent = IndentOf(c, 1);
  }
  if (c.Has(2)) {
    const std::vector<Value> separators = ToVector(c.session, *c.bound[2]);
    if (separators.size() != 2) throw TemplateFailure("tojson: separators must be two strings");
    style.item_separator = TextOf(separators[0], c.name);
    style.key_separator = TextOf(separators[1], c.name);
  }
  return c.session.String(ToJson(c.session, c.self, style));
}

// Parses the number in `text` like Python's float().
std::optional<double> ParseFloat(std::string_view text) {
  if (HasOtherDigits(text)) throw TemplateFailure(NotSupported("number", text));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (text.starts_with('-') || end != text.end() || error != std::errc()) return std::nullopt;
  return negative ? -value : value;
}

Value IntFilter(const Call& c) {
  const Value fallback = c.bound[0].value_or(Value::Int(0));
  if (c.self.Known().is_big()) return c.self;
  if (c.self.is_integral()) return Value::Int(c.self.as_int());
  std::optional<double> number;
  if (c.self.is_string()) {
    c.session.ChargeWide(c.self.as_string().size());
    std::string_view text = Strip(c.self.as_string(), true, true);
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    int64_t integer = 0;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), integer);
    if (end == text.end() && error == std::errc()) return Value::Int(integer);
    number = ParseFloat(text);
  } else if (c.self.is_float()) {
    number = c.self.as_double();
    if (std::isinf(*number)) throw TemplateFailure("cannot convert float infinity to integer");
  }
  if (!number || !std::isfinite(*number)) return fallback;
  if (std::abs(*number) > 9.2e18)
    throw TemplateFailure(NotSupported("number", Str(c.session, c.self)));
  return Value::Int(static_cast<int64_t>(*number));
}

Value Escape(const Call& c) {
  return c.self.is_markup() ? c.self : c.session.String(EscapeHtml(c.session, TextOfSelf(c)), true);
}

constexpr FunctionRow<Value> kFilters[] = {
    {"capitalize", [](const Call& c) { return c.Like(Capitalize(WideTextOfSelf(c))); }},
    {"count", LengthFilter},
    {"d", Default, "default_value boolean"},
    {"default", Default, "default_value boolean"},
    {"dictsort", DictSort, "case_sensitive -by reverse"},
    {"e", Escape},
    {"escape", Escape},
    {"first", First},
    {"indent", Indent, "width first blank"},
    {"int", IntFilter, "default -base"},
    {"items", Items},
    {"join", Join, "d attribute"},
    {"last", Last},
    {"length", LengthFilter},
    {"list", [](const Call& c) { return Value::List(ToVector(c.session, c.self)); }},
    {"lower", [](const Call& c) { return c.Like(Lower(WideTextOfSelf(c))); }},
    {"map", Map, "*"},
    {"reject", Select<false, false>, "*"},
    {"rejectattr", Select<false, true>, "*"},
    {"replace", Replace, "old new count", 2},
    {"reverse", Reverse},
    {"safe", [](const Call& c) { return c.session.String(TextOfSelf(c), true); }},
    {"select", Select<true, false>, "*"},
    {"selectattr", Select<true, true>, "*"},
    {"sort", Sort, "reverse case_sensitive attribute"},
    {"string", [](const Call& c) { return c.Like(TextOfSelf(c)); }},
    {"title", TitleFilter},
    {"tojson", ToJsonFilter, "ensure_ascii indent separators sort_keys"},
    {"trim",
     [](const Call& c) {
       const std::string text = TextOfSelf(c);
       return c.Like(std::string(Strip(text, true, true, StripSet(c, text))));
     },
     "chars"},
    {"unique", Unique, "case_sensitive attribute"},
    {"upper", [](const Call& c) { return c.Like(Upper(WideTextOfSelf(c))); }},
};
constexpr std::string_view kRefusedFilters[] = {
    "abs",      "attr",      "batch", "center",   "filesizeformat", "float",  "forceescape",
    "format",   "groupby",   "max",   "min",      "pprint",         "random", "round",
    "slice",    "striptags", "sum",   "truncate", "urlencode",      "urlize", "wordcount",
    "wordwrap", "xmlattr"};

}  // namespace

Value CallFilter(Session& session, std::string_view name, const Value& value,
                 const Arguments& arguments) {
  session.Step();
  if (const auto* row = FindRow<Value>(kFilters, name))
    return Invoke(*row, session, value, arguments);
  if (std::ranges::find(kRefusedFilters, name) != std::end(kRefusedFilters))
    throw TemplateFailure(NotSupported("filter", name));
  throw TemplateFailure(fmt::format("No filter named '{}'.", name));
}

}  // namespace oscar::jinja
