// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The two formats of Python's str, without widths, precisions and conversions.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "capture/text/template/operators.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

// An argument as text, escaped where the format is marked as safe and the argument is not.
std::string Inserted(Session& session, const Value& format, const Value& argument) {
  std::string text = Str(session, argument);
  return format.is_markup() && !argument.is_markup() ? EscapeHtml(text) : text;
}

// The argument that a field of str.format names; `next` counts the fields without a name.
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

Value PercentFormat(Session& session, const Value& format, const Value& arguments) {
  const std::string& text = format.as_string();
  const std::vector<Value> given =
      arguments.is_tuple() ? arguments.items() : std::vector<Value>{arguments};
  size_t used = 0;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t percent = std::min(text.find('%', at), text.size());
    session.Append(std::string_view(text).substr(at, percent - at), out);
    at = percent + 2;
    if (percent == text.size()) break;
    if (percent + 1 == text.size()) throw TemplateFailure("incomplete format");
    const char kind = text[percent + 1];
    if (kind == '%') {
      out += '%';
      continue;
    }
    if (kind != 's' && kind != 'd')
      throw TemplateFailure(NotSupported("format", text.substr(percent, 2)));
    if (used == given.size()) throw TemplateFailure("not enough arguments for format string");
    const Value& value = given[used++];
    if (kind == 'd' && !value.Known().is_integral())
      throw TemplateFailure(NotSupported("argument of %d of type", value.TypeName()));
    const Value shown = kind == 'd' ? Value::Int(value.as_int()) : value;
    session.Append(Inserted(session, format, shown), out);
  }
  // Whatever Python takes for a mapping may stand there unused.
  const bool may_be_unused = arguments.is_dict() || arguments.is_list() || arguments.is_undefined();
  if (used < given.size() && !may_be_unused)
    throw TemplateFailure("not all arguments converted during string formatting");
  return session.String(std::move(out), format.is_markup());
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
    session.Append(Inserted(session, format, value), out);
    at = end + 1;
  }
  return session.String(std::move(out), format.is_markup());
}

}  // namespace oscar::jinja
