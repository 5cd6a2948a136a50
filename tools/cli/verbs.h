// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A command with verbs, like "oscar-zoo publish ...". The first argument selects a verb, which then
// runs like an ordinary command. All options come after the verb, --log-format too.
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

// Runs the verb and returns the process exit code. Handles --help, which lists the verbs, and
// --version of the program. An unknown verb is a usage error that names the nearest verb.
int RunVerbs(int argc, const char* const* argv, const VerbCommand& command,
             const Console& console = ProcessConsole());

// The --help text of the program itself.
std::string VerbsHelpText(const VerbCommand& command, int columns);

}  // namespace oscar
