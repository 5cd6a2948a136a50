// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A command with verbs, "oscar-zoo publish ...": the first argument chooses the table, the rest is
// an ordinary command. Options stand after the verb, also --log-format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/cli/command.h"

namespace oscar {

struct Verb {
  OptionTable table;  // of the command "<command> <verb>", which also names the verb
  CommandFunction run;
  std::string name() const { return table.command().substr(table.command().rfind(' ') + 1); }
};

struct VerbCommand {
  std::string command, summary;  // "oscar-zoo", the first line of its help
  std::vector<Verb> verbs;       // in the order of the help
  std::string notes;             // end of the help: what holds for all verbs
  // The command for a first argument that is not a verb; its --help lists the verbs too.
  std::optional<Verb> without_verb = {};
};

// Returns the process exit code. --help lists the verbs and --version is the program's; an unknown
// verb is a usage error that names the nearest.
int RunVerbs(int argc, const char* const* argv, const VerbCommand& command,
             const Console& console = ProcessConsole());

// The --help text of the command itself.
std::string VerbsHelpText(const VerbCommand& command, int columns);

}  // namespace oscar
