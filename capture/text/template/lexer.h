// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A template cut into tokens, with the white space rules of chat templates: trim_blocks (the
// newline behind {% %} goes), lstrip_blocks (indentation before {% %} goes), and - or + inside the
// tags. Trap: both rules are for {% %} and {# #} only; {{ }} keeps what surrounds it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/text/template/session.h"

namespace oscar::jinja {

enum class TokenKind {
  kText,      // outside of tags
  kOperator,  // {% %} {{ }} too
  kName,
  kString,
  kNumber,
  kEnd  // of the template
};

struct Token {
  TokenKind kind;
  std::string text;  // of a string: its value
  Value number;      // of kNumber
  int line;          // 1 is the first
};

// TemplateFailure with "line N: " in front for what is no template.
std::vector<Token> Tokenize(std::string_view source);

[[noreturn]] void FailSyntax(int line, const std::string& message);

}  // namespace oscar::jinja
