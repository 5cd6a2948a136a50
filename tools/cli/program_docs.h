// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The man page and the bash completions that a package installs beside a program, made from its
// option tables. `PROGRAM --print-man` and `PROGRAM --print-completion bash` print them, and cmake
// --install calls these for every program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/option_table.h"

namespace oscar {

struct ProgramDocs {
  std::string command, summary;     // `command`: like "oscar-zoo"
  std::vector<OptionTable> tables;  // for the program and its verbs, like "oscar-zoo publish"
  std::string notes = {};
};

std::string ManPage(const ProgramDocs& docs);  // for section 1, in the man macros

// `shell`: bash. Throws UsageError for any other.
std::string ShellCompletion(const ProgramDocs& docs, std::string_view shell);

// Returns the man page or the completion if these arguments request one of them.
std::optional<std::string> DocsAskedFor(const ProgramDocs& docs,
                                        const std::vector<std::string>& arguments);

// Splits a help text at semicolons outside parentheses. The first part must fit on a line.
std::vector<std::string> Clauses(const std::string& help);

}  // namespace oscar
