// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// argv by the option table: CLI11 splits it, the table types and checks it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/option_table.h"

namespace oscar {

// The option's name and what was given for it, in order.
struct GivenFlag {
  std::string name;
  std::vector<std::string> values;
};

// The heading of the options that all commands have.
inline constexpr std::string_view kCommonGroup = "Common";

// `arguments` without the program's name; a positional may be given as its flag, --model MODEL.
// Throws UsageError: a flag that is not in the table (naming the nearest), a missing value, an
// argument too many. Sets nothing.
std::vector<GivenFlag> SplitCommandLine(const OptionTable& table,
                                        const std::vector<std::string>& arguments);

// "--min-tokens"; a positional has such a flag too.
std::string LongFlag(const Option& option);
// Pieces of the help: "-o, --output TEXT"; the description and default, on the first screen only up
// to the first semicolon; "oscar-calibrate [MODEL] [options]".
std::string HelpLabel(const Option& option);
std::string HelpDescription(const Option& option, bool all);
std::string UsageLine(const OptionTable& table);

// The text of --help, one screen with the main options, or of --help-all; lines of at most
// `columns` bytes where words allow.
std::string HelpText(const OptionTable& table, int columns, bool all);

// The command line that resumes an interrupted run, quoted for a POSIX shell: `program` (argv[0],
// so that it works where it was typed) and `arguments` without the options that must not be
// repeated. Those of them that the file sets are put back to their defaults.
std::string ResumeCommand(const OptionTable& table, const std::string& program,
                          const std::vector<std::string>& arguments);

// One argument as a POSIX shell reads it back.
std::string ShellQuote(const std::string& text);

}  // namespace oscar
