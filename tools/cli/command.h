// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What every command does around its work: options, help, version, configuration, log, signals, and
// the one place where an exception becomes an exit code. Exit codes are those of
// linalg/base/error.h. Trap: a command returns its results as text on `out`; nothing else may write
// to standard output.
#pragma once

#include <chrono>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "linalg/base/error.h"
#include "tools/cli/console.h"
#include "tools/cli/log.h"
#include "tools/cli/option_table.h"
#include "tools/cli/progress.h"
#include "tools/cli/stop_signal.h"

namespace oscar {

// The options that all commands have.
struct CommonOptions {
  std::string config;  // --config FILE
  bool print_config = false, dry_run = false, quiet = false, json = false;
  bool help = false, help_all = false, version = false;
  LogFormat log_format = LogFormat::kText;
};

// Not those that `table` has of its own: --json and --version.
void AddCommonOptions(CommonOptions* common, OptionTable* table);

// What the command's function is given.
struct CommandContext {
  std::ostream& out;  // standard output: results for people, which --quiet and --json leave out
  Log& log;
  Progress& progress;
  const StopSignal& stop;  // to be asked at every layer boundary
  Json config;             // OptionTable::Stored(): what goes into the artifact
  bool dry_run;            // print the plan, make nothing
  // From here on a stop is obeyed after this time wherever the command is then: the process ends as
  // if it had been killed, and says how to resume. For a command whose files survive that.
  std::function<void(std::chrono::milliseconds)> stop_within = [](std::chrono::milliseconds) {};
};

struct CommandResult {
  ExitCode exit_code = ExitCode::kDone;  // or kGateFailed
  std::string made = {};                 // path of what was made: the last line of standard output
  Json json = Json::object();            // what --json prints beside "path" and "exit_code"
};

using CommandFunction = std::function<CommandResult(CommandContext&)>;

// Parses, runs, reports; returns the process exit code. The common options are added to `table`; a
// command with a --version or a --json of its own (a verb; verbs.h) does not get the common one.
// With the common --json, standard output holds one object, of an error too.
int RunCommand(int argc, const char* const* argv, OptionTable table, const CommandFunction& run,
               const Console& console = ProcessConsole());

// How a failure is reported: oscar::Error by its own code; out of memory, a device or a full disk
// as kResources. Any other exception is one we failed to explain: reported as such, with kInput,
// because what reaches it is input.
struct Failure {
  ExitCode exit_code;
  std::string message;
};
Failure DescribeFailure(const std::exception& error);

// Reports what is wrong with the command line itself, in the format `arguments` ask for; `hint` is
// added to the message. Returns the exit code.
int ReportFailure(const std::exception& error, const std::vector<std::string>& arguments,
                  const std::string& hint, const Console& console);

}  // namespace oscar
