// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A command with verbs, "oscar-zoo publish ...": the first argument selects the table, and the rest
// is an ordinary command. Options, including --log-format, come after the verb.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/cli/command.h"

namespace oscar {

struct Verb {
  OptionTable table;  // its command "<command> <verb>" includes the verb
  CommandFunction run;
  std::string name() const { return table.command().substr(table.command().rfind(' ') + 1); }
};

struct VerbCommand {
  std::string command, summary;  // like "oscar-zoo", and the first line of its help
  std::vector<Verb> verbs;       // in the order of the help
  std::string notes;             // notes on all verbs, at the end of the help
  // Runs if the first argument is not a verb. Its --help also lists the verbs.
  std::optional<Verb> without_verb = {};
};

// Runs the verb and returns the process exit code. --help lists the verbs, and --version is that of
// the program. An unknown verb is a usage error that names the nearest.
int RunVerbs(int argc, const char* const* argv, const VerbCommand& command,
             const Console& console = ProcessConsole());

// The --help text of the program itself.
std::string VerbsHelpText(const VerbCommand& command, int columns);

}  // namespace oscar
