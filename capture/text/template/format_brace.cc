// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "capture/files/utf8.h"
#include "capture/text/template/format.h"
#include "capture/text/template/format_spec.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

// [[fill]align][sign][#][0][width][grouping][.precision][type]
FormatSpec ParseSpec(std::string_view text) {
  FormatSpec spec;
  size_t at = 0;
  size_t behind_fill = 0;
  if (!text.empty()) NextCodePoint(text, behind_fill);
  constexpr std::string_view kAligns = "<>=^";
  if (behind_fill < text.size() && kAligns.find(text[behind_fill]) != kAligns.npos) {
    spec.fill = text.substr(0, behind_fill);
    spec.align = text[behind_fill];
    at = behind_fill + 1;
  } else if (!text.empty() && kAligns.find(text[0]) != kAligns.npos) {
    spec.align = text[0];
    at = 1;
  }
  const auto take = [&](std::string_view set) {
    return at < text.size() && set.find(text[at]) != set.npos ? text[at++] : '\0';
  };
  if (const char sign = take("+- ")) spec.sign = sign;
  spec.alternate = take("#") != '\0';
  spec.zero = take("0") != '\0';
  spec.width = ParseFormatNumber(text, at);
  spec.grouping = take(",_");
  if (take(".") != '\0') spec.precision = ParseFormatNumber(text, at);
  spec.type = take("sdbxXoeEfFgG%");
  if (at != text.size()) throw TemplateFailure(fmt::format("Invalid format specifier '{}'", text));
  return spec;
}

std::string FormatValue(Session& session, const Value& value, std::string_view spec_text) {
  if (spec_text.empty()) return Str(session, value);
  if (value.is_undefined() || !(value.is_number() || value.is_string())) {
    throw TemplateFailure(
        fmt::format("unsupported format string passed to {}.__format__", value.TypeName()));
  }
  const FormatSpec spec = ParseSpec(spec_text);
  if (value.is_number()) {
    const bool integers_only = std::string_view("dbxXo").find(spec.type) != std::string_view::npos;
    if (spec.type != 's' && !(integers_only && value.is_float())) return FormatNumber(spec, value);
  } else if ((spec.type == '\0' || spec.type == 's') && spec.align != '=' && spec.sign == '-' &&
             spec.grouping == '\0') {
    return FormatText(spec, Str(session, value));
  }
  throw TemplateFailure(fmt::format("Unknown format code '{}' for object of type '{}'",
                                    spec.type != '\0' ? spec.type : '=', value.TypeName()));
}

// One field of str.format: the argument, then .attributes and [items].
Value Field(Session& session, std::string_view name, const Arguments& arguments, int64_t& next) {
  const size_t end = std::min(name.find_first_of(".["), name.size());
  const std::string_view first = name.substr(0, end);
  std::optional<Value> value;
  if (first.empty() || first.find_first_not_of("0123456789") == first.npos) {
    size_t at = 0;
    const int64_t index = first.empty() ? next++ : ParseFormatNumber(first, at);
    if (index < static_cast<int64_t>(arguments.positional.size()))
      value = arguments.positional[static_cast<size_t>(index)];
    if (!value) {
      throw TemplateFailure(
          fmt::format("Replacement index {} out of range for positional args tuple", index));
    }
  } else {
    for (const auto& [key, named] : arguments.named) {
      if (key == first) value = named;
    }
    if (!value) throw TemplateFailure(fmt::format("KeyError: '{}'", first));
  }
  name.remove_prefix(end);
  while (!name.empty()) {
    if (name[0] == '.') {
      const size_t stop = std::min(name.find_first_of(".[", 1), name.size());
      value = GetAttribute(session, *value, name.substr(1, stop - 1));
      name.remove_prefix(stop);
      continue;
    }
    const size_t stop = name.find(']');
    if (name[0] != '[' || stop == name.npos) throw TemplateFailure("Missing ']' in format string");
    const std::string_view key = name.substr(1, stop - 1);
    const bool is_index = !key.empty() && key.find_first_not_of("0123456789") == key.npos;
    size_t at = 0;
    value = GetItem(
        session, *value,
        is_index ? Value::Int(ParseFormatNumber(key, at)) : Value::String(std::string(key)));
    name.remove_prefix(stop + 1);
  }
  return *value;
}

std::string FormatFields(Session& session, std::string_view format, bool markup,
                         const Arguments& arguments) {
  std::string out;
  int64_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    const char c = format[i];
    if ((c == '{' || c == '}') && i + 1 < format.size() && format[i + 1] == c) {
      out += c;
      ++i;
      continue;
    }
    if (c == '}') throw TemplateFailure("Single '}' encountered in format string");
    if (c != '{') {
      out += c;
      continue;
    }
    int depth = 1;
    size_t end = i + 1;
    for (; end < format.size() && depth > 0; ++end)
      depth += format[end] == '{' ? 1 : format[end] == '}' ? -1 : 0;
    if (depth > 0) throw TemplateFailure("expected '}' before end of string");
    std::string_view field = format.substr(i + 1, end - i - 2);
    i = end - 1;
    std::string spec;
    if (const size_t colon = field.find(':'); colon != field.npos) {
      spec = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    char conversion = '\0';
    if (const size_t mark = field.find('!'); mark != field.npos) {
      if (mark + 2 != field.size()) throw TemplateFailure("bad conversion in format string");
      conversion = field[mark + 1];
      field = field.substr(0, mark);
    }
    Value value = Field(session, field, arguments, next);
    if (spec.find('{') != spec.npos) {
      // A field inside a specification: its argument comes behind the outer one.
      Arguments rest = arguments;
      const auto used = std::min<size_t>(static_cast<size_t>(next), rest.positional.size());
      rest.positional.erase(rest.positional.begin(),
                            rest.positional.begin() + static_cast<ptrdiff_t>(used));
      const Session::Level level(session);
      spec = FormatFields(session, spec, false, rest);
      ++next;
    }
    if (conversion == 'r' || conversion == 'a') value = Value::String(Repr(session, value));
    if (conversion == 's') value = Value::String(Str(session, value));
    std::string text = FormatValue(session, value, spec);
    if (markup && !value.is_markup()) text = EscapeHtml(text);
    session.ChargeText(text.size());
    out += text;
    if (out.size() > Session::kMaxTextBytes) session.ChargeText(out.size());
  }
  return out;
}

}  // namespace

Value BraceFormat(Session& session, const Value& format, const Arguments& arguments) {
  return session.String(FormatFields(session, format.as_string(), format.is_markup(), arguments),
                        format.is_markup());
}

}  // namespace oscar::jinja
