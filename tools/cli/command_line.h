// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// argv by the option table: CLI11 splits it, the table types and checks it.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/option_table.h"

namespace oscar {

// The option's name and what was given for it, in order.
struct GivenFlag {
  std::string name;
  std::vector<std::string> values;
};

// `arguments` without the program's name. Throws UsageError: a flag that is not in the table
// (naming the nearest), a missing value, an argument too many. Sets nothing.
std::vector<GivenFlag> SplitCommandLine(const OptionTable& table,
                                        const std::vector<std::string>& arguments);

// The --help text, lines of at most `columns` bytes where words allow.
std::string HelpText(const OptionTable& table, int columns);

// The command line that goes on with an interrupted run, quoted for a POSIX shell: `program`
// (argv[0], so that the line works where it was typed) and `arguments` without the options that
// must not be repeated; those of them that the file sets are put back to their defaults.
std::string ResumeCommand(const OptionTable& table, const std::string& program,
                          const std::vector<std::string>& arguments);

// One argument as a POSIX shell reads it back.
std::string ShellQuote(const std::string& text);

}  // namespace oscar
