// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads argv with the option table. CLI11 splits it; the table converts and checks the values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/option_table.h"

namespace oscar {

// An option's name and the values given for it, in order.
struct GivenFlag {
  std::string name;
  std::vector<std::string> values;
};

// The heading of the options that all commands have.
inline constexpr std::string_view kCommonGroup = "Common";

// Splits `arguments`, which do not contain the program's name. A positional may also be given as a
// flag, like --model MODEL. Does not set fields. Throws UsageError for an unknown flag (naming the
// nearest), a missing value, or too many arguments.
std::vector<GivenFlag> SplitCommandLine(const OptionTable& table,
                                        const std::vector<std::string>& arguments);

// Returns a flag like "--min-tokens". A positional has one too.
std::string LongFlag(const Option& option);
// Return parts of the help: the label "-o, --output TEXT"; the description and the default (unless
// `all`, only up to the first semicolon); the usage "oscar-calibrate [MODEL] [options]".
std::string HelpLabel(const Option& option);
std::string HelpDescription(const Option& option, bool all);
std::string UsageLine(const OptionTable& table);

// Returns the text of --help-all if `all`, else that of --help, which is one screen with the main
// options. Lines have at most `columns` bytes unless a word is longer.
std::string HelpText(const OptionTable& table, int columns, bool all);

// Returns the command line that resumes an interrupted run, quoted for a POSIX shell: `program`
// (argv[0], so that it works in the same directory) and `arguments`. Leaves out options that must
// not be repeated, like --restart. If the configuration file sets one of these, adds its default as
// a flag.
std::string ResumeCommand(const OptionTable& table, const std::string& program,
                          const std::vector<std::string>& arguments);

// Quotes one argument for a POSIX shell.
std::string ShellQuote(const std::string& text);

}  // namespace oscar
