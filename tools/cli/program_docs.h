// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The documentation that a package installs beside a program, made from its option tables: the man
// page and the bash completions. `PROGRAM --print-man` and `PROGRAM --print-completion bash` print
// them; cmake --install does that for every program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/option_table.h"

namespace oscar {

struct ProgramDocs {
  std::string command, summary;     // "oscar-zoo"
  std::vector<OptionTable> tables;  // of "oscar-zoo" itself and of its verbs, "oscar-zoo publish"
  std::string notes = {};
};

std::string ManPage(const ProgramDocs& docs);  // section 1, in the man macros

// `shell`: bash; UsageError for any other.
std::string ShellCompletion(const ProgramDocs& docs, std::string_view shell);

// The text that these arguments ask for, if they ask for one of the two.
std::optional<std::string> DocsAskedFor(const ProgramDocs& docs,
                                        const std::vector<std::string>& arguments);

// The parts of a help text between semicolons that are in no parentheses; the first fits a line.
std::vector<std::string> Clauses(const std::string& help);

}  // namespace oscar
