// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts values to text: Python's str(), repr() and formats, and json.dumps. Trap: str(1.0) is
// "1.0", str(1e16) is "1e+16" and str(True) is "True", but JSON writes true; a string inside a list
// prints as repr.
#pragma once

#include <optional>
#include <string>

#include "capture/text/template/objects.h"
#include "capture/text/template/session.h"

namespace oscar::jinja {

std::string StringRepr(std::string_view text);  // 'it' or "it's"
// These throw TemplateFailure for values that a template has no reason to print, such as functions
// and generators.
std::string Repr(Session& session, const Value& value);
std::string Str(Session& session, const Value& value);  // the text that {{ value }} prints

struct JsonStyle {
  std::optional<std::string> indent;  // text per level; none: one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
  bool ensure_ascii = false;
};
// Throws TemplateFailure for values that JSON cannot represent.
std::string ToJson(Session& session, const Value& value, const JsonStyle& style);

// format.format(arguments); supports {}, {0} and {name}.
Value BraceFormat(Session& session, const Value& format, const Arguments& arguments);

}  // namespace oscar::jinja
