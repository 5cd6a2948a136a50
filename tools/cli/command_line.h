// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads argv with the option table: CLI11 splits it, the table types and checks it.
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

// Splits `arguments`, which exclude the program's name. A positional may be given as a flag,
// --model MODEL. Sets nothing. Throws UsageError for an unknown flag (naming the nearest), a
// missing value, or too many arguments.
std::vector<GivenFlag> SplitCommandLine(const OptionTable& table,
                                        const std::vector<std::string>& arguments);

// Returns a flag like "--min-tokens". A positional has one too.
std::string LongFlag(const Option& option);
// Parts of the help: "-o, --output TEXT"; description and default (on the first screen only up to
// the first semicolon); "oscar-calibrate [MODEL] [options]".
std::string HelpLabel(const Option& option);
std::string HelpDescription(const Option& option, bool all);
std::string UsageLine(const OptionTable& table);

// The text of --help, one screen with the main options, or of --help-all. Lines have at most
// `columns` bytes if words are short enough.
std::string HelpText(const OptionTable& table, int columns, bool all);

// Returns the command line that resumes an interrupted run, quoted for a POSIX shell. It has
// `program` (argv[0], so that it works in the same place) and `arguments` without the options that
// must not be repeated. If a file sets such options, they are reset to their defaults.
std::string ResumeCommand(const OptionTable& table, const std::string& program,
                          const std::vector<std::string>& arguments);

// Quotes one argument for a POSIX shell.
std::string ShellQuote(const std::string& text);

}  // namespace oscar
