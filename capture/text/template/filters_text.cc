// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Filters over text. Trap: most of them take any value and turn it into text first.
#include <fmt/format.h>

#include <algorithm>

#include "capture/files/utf8.h"
#include "capture/text/template/format.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/string_ops.h"
#include "capture/text/template/tables.h"
#include "capture/text/template/unicode.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

constexpr int64_t kMaxIndent = 1000;

Value AsText(Session& session, const Value& value) {
  return value.is_string() ? value : session.String(Str(session, value));
}

Value CallMethod(Session& session, const Value& text, std::string_view name,
                 std::vector<Value> positional) {
  Arguments arguments{std::move(positional), {}};
  return Call(session, GetAttribute(session, text, name), arguments);
}

template <const char* kName>
Value ByMethod(Session& session, const Value& value, const Arguments& arguments) {
  arguments.Bind(kName, {}, 0);
  return CallMethod(session, AsText(session, value), kName, {});
}
constexpr char kUpper[] = "upper";
constexpr char kLower[] = "lower";
constexpr char kCapitalize[] = "capitalize";

Value TrimFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("trim", {"chars"}, 0);
  return CallMethod(session, AsText(session, value), "strip", {bound[0].value_or(Value::None())});
}

Value CenterFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("center", {"width"}, 0);
  return CallMethod(session, AsText(session, value), "center", {bound[0].value_or(Value::Int(80))});
}

// Words begin behind - ( { [ < and white space; str.title is another thing.
Value TitleFilter(Session& session, const Value& value, const Arguments& arguments) {
  arguments.Bind("title", {}, 0);
  const Value text = AsText(session, value);
  session.ChargeText(text.as_string().size());
  const std::u32string all = DecodeUtf8(text.as_string());
  const auto separates = [](char32_t c) {
    return IsSpace(c) || std::u32string_view(U"-({[<").find(c) != std::u32string_view::npos;
  };
  std::u32string out;
  for (size_t i = 0; i < all.size();) {
    size_t end = i;
    while (end < all.size() && separates(all[end]) == separates(all[i])) ++end;
    out += Upper(all.substr(i, 1));
    out += Lower(all.substr(i + 1, end - i - 1));
    i = end;
  }
  return session.String(EncodeUtf8(out), text.is_markup());
}

Value ReplaceFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("replace", {"old", "new", "count"}, 2);
  const bool all = !bound[2] || bound[2]->is_none();
  return session.String(ReplaceText(session, Str(session, value), Str(session, *bound[0]),
                                    Str(session, *bound[1]),
                                    all ? -1 : IntegerOf(*bound[2], "replace")));
}

Value IndentFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("indent", {"width", "first", "blank"}, 0);
  if (!value.is_string()) {
    if (value.is_undefined()) throw TemplateFailure(value.undefined_reason());
    throw TemplateFailure(
        fmt::format("the filter indent needs a string, not {}", value.TypeName()));
  }
  std::string indent(4, ' ');
  if (bound[0] && bound[0]->is_string()) {
    indent = bound[0]->as_string();
  } else if (bound[0]) {
    const int64_t width = std::clamp<int64_t>(IntegerOf(*bound[0], "indent"), 0, kMaxIndent);
    indent.assign(static_cast<size_t>(width), ' ');
  }
  const bool blank = bound[2] && bound[2]->Truthy(session);
  const std::string text = value.as_string() + "\n";
  std::string out;
  for (const std::string_view line : Lines(text, false)) {
    const bool is_first = line.data() == text.data();
    if (!is_first) out += '\n';
    if (!is_first && (blank || !line.empty())) out += indent;
    out += line;
    session.ChargeText(line.size() + indent.size());
    if (out.size() > Session::kMaxTextBytes) session.ChargeText(out.size());
  }
  if (bound[1] && bound[1]->Truthy(session)) out = indent + out;
  return session.String(std::move(out), value.is_markup());
}

Value TruncateFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("truncate", {"length", "killwords", "end", "leeway"}, 0);
  const int64_t length = bound[0] ? IntegerOf(*bound[0], "truncate") : 255;
  const std::string end = bound[2] ? StringArgument(*bound[2], "truncate") : std::string("...");
  const int64_t leeway = bound[3] && !bound[3]->is_none() ? IntegerOf(*bound[3], "truncate") : 5;
  const auto end_size = static_cast<int64_t>(CodePointCount(end));
  if (length < end_size || leeway < 0) {
    throw TemplateFailure(fmt::format("expected length >= {}, got {}", end_size, length));
  }
  if (const auto size = Length(session, value); size && *size <= length + leeway) return value;
  const std::u32string text = DecodeUtf8(StringArgument(value, "truncate"));
  std::u32string cut = text.substr(0, static_cast<size_t>(length - end_size));
  const bool kill = bound[1] && bound[1]->Truthy(session);
  if (const size_t space = cut.rfind(U' '); !kill && space != cut.npos) cut.resize(space);
  return session.String(EncodeUtf8(cut) + end, value.is_markup());
}

Value WordCountFilter(Session& session, const Value& value, const Arguments& arguments) {
  arguments.Bind("wordcount", {}, 0);
  const std::string text = Str(session, value);
  session.ChargeText(text.size());
  int64_t words = 0;
  bool inside = false;
  for (const char32_t c : DecodeUtf8(text)) {
    words += IsWord(c) && !inside ? 1 : 0;
    inside = IsWord(c);
  }
  return Value::Int(words);
}

Value StringFilter(Session& session, const Value& value, const Arguments& arguments) {
  arguments.Bind("string", {}, 0);
  return AsText(session, value);
}

Value SafeFilter(Session& session, const Value& value, const Arguments& arguments) {
  arguments.Bind("safe", {}, 0);
  return session.String(Str(session, value), true);
}

Value EscapeFilter(Session& session, const Value& value, const Arguments& arguments) {
  arguments.Bind("escape", {}, 0);
  return value.is_markup() ? value : session.String(EscapeHtml(Str(session, value)), true);
}

Value ForceEscapeFilter(Session& session, const Value& value, const Arguments& arguments) {
  arguments.Bind("forceescape", {}, 0);
  return session.String(EscapeHtml(Str(session, value)), true);
}

Value FormatFilter(Session& session, const Value& value, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    throw TemplateFailure("can't handle positional and keyword arguments at the same time");
  }
  Value given = Value::Tuple(arguments.positional);
  if (!arguments.named.empty()) {
    Dict dict;
    for (const auto& [name, item] : arguments.named) dict.Set(Value::String(name), item);
    given = Value::FromDict(std::move(dict));
  }
  return PercentFormat(session, AsText(session, value), given);
}

// transformers' own (chat_template_utils.py): json.dumps with ensure_ascii off.
Value ToJsonFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound =
      arguments.Bind("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  JsonStyle style;
  style.ensure_ascii = bound[0] && bound[0]->Truthy(session);
  style.sort_keys = bound[3] && bound[3]->Truthy(session);
  if (bound[1] && !bound[1]->is_none()) {
    style.item_separator = ",";
    if (bound[1]->is_string()) {
      style.indent = bound[1]->as_string();
    } else {
      const int64_t width = std::clamp<int64_t>(IntegerOf(*bound[1], "tojson"), 0, kMaxIndent);
      style.indent = std::string(static_cast<size_t>(width), ' ');
    }
  }
  if (bound[2] && !bound[2]->is_none()) {
    const std::vector<Value> separators = ToVector(session, *bound[2]);
    if (separators.size() != 2) throw TemplateFailure("tojson: separators must be two strings");
    style.item_separator = StringArgument(separators[0], "tojson");
    style.key_separator = StringArgument(separators[1], "tojson");
  }
  return session.String(ToJson(session, value, style));
}

Value UrlEncodeFilter(Session& session, const Value& value, const Arguments& arguments) {
  arguments.Bind("urlencode", {}, 0);
  const auto quote = [&](const Value& part, bool for_query) {
    std::string out;
    for (const char c : Str(session, part)) {
      const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                         (c >= 'A' && c <= 'Z') ||
                         std::string_view("_.-~").find(c) != std::string_view::npos;
      if (plain || (c == '/' && !for_query)) {
        out += c;
      } else if (c == ' ' && for_query) {
        out += '+';
      } else {
        out += fmt::format("%{:02X}", static_cast<uint8_t>(c));
      }
    }
    session.ChargeText(out.size());
    return out;
  };
  if (value.is_string() || !IsIterable(session, value)) return session.String(quote(value, false));
  std::string out;
  const Value pairs = value.is_dict() ? CallMethod(session, value, "items", {}) : value;
  for (const Value& pair : ToVector(session, pairs)) {
    const std::vector<Value> parts = ToVector(session, pair);
    if (parts.size() != 2) throw TemplateFailure("urlencode needs pairs");
    if (!out.empty()) out += '&';
    out += quote(parts[0], true) + "=" + quote(parts[1], true);
  }
  return session.String(std::move(out));
}

}  // namespace

std::span<const FilterRow> TextFilters() {
  static constexpr FilterRow kFilters[] = {
      {"trim", TrimFilter},
      {"tojson", ToJsonFilter},
      {"upper", ByMethod<kUpper>},
      {"lower", ByMethod<kLower>},
      {"capitalize", ByMethod<kCapitalize>},
      {"title", TitleFilter},
      {"center", CenterFilter},
      {"replace", ReplaceFilter},
      {"indent", IndentFilter},
      {"truncate", TruncateFilter},
      {"wordcount", WordCountFilter},
      {"string", StringFilter},
      {"safe", SafeFilter},
      {"e", EscapeFilter},
      {"escape", EscapeFilter},
      {"forceescape", ForceEscapeFilter},
      {"format", FormatFilter},
      {"urlencode", UrlEncodeFilter},
  };
  return kFilters;
}

}  // namespace oscar::jinja
