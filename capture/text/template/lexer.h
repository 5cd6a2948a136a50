// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Splits a template into tokens, with the white space rules of chat templates: trim_blocks (removes
// the newline after {% %}), lstrip_blocks (removes indentation before {% %}), and - or + inside the
// tags. Trap: both rules apply only to {% %} and {# #}; {{ }} keeps the text around it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/text/template/session.h"

namespace oscar::jinja {

enum class TokenKind {
  kText,      // outside tags
  kOperator,  // includes {% %} and {{ }}
  kName,
  kString,
  kNumber,
  kEnd  // end of the template
};

struct Token {
  TokenKind kind;
  std::string text;  // for a string: its value
  Value number;      // for kNumber
  int line;          // starts at 1
};

// Throws TemplateFailure starting with "line N: " if the source is not a template.
std::vector<Token> Tokenize(std::string_view source);

[[noreturn]] void FailSyntax(int line, const std::string& message);

}  // namespace oscar::jinja
