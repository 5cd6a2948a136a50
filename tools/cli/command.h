// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The code that runs every command: options, help, version, configuration, log and signals, and the
// only place where an exception becomes an exit code (linalg/base/error.h). Trap: a command returns
// its results as text on `out`; nothing else may write to standard output.
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

// Adds the options that all commands have, except --json and --version if `table` has its own.
void AddCommonOptions(CommonOptions* common, OptionTable* table);

// The inputs and outputs of a command's function.
struct CommandContext {
  std::ostream& out;  // standard output for people; dropped with --quiet and --json
  Log& log;
  Progress& progress;
  const StopSignal& stop;  // the command must check it after every layer
  Json config;             // OptionTable::Stored(), which the artifact holds
  bool dry_run;            // only print the plan
  // After this call, if a stop is requested and the command does not stop within this time, the
  // process ends as if it were killed, and prints how to resume. Only for commands whose files
  // survive that.
  std::function<void(std::chrono::milliseconds)> stop_within = [](std::chrono::milliseconds) {};
};

struct CommandResult {
  ExitCode exit_code = ExitCode::kDone;  // or kGateFailed
  std::string made = {};                 // path of the output, printed as the last line
  Json json = Json::object();            // printed by --json beside "path" and "exit_code"
};

using CommandFunction = std::function<CommandResult(CommandContext&)>;

// Parses the arguments, runs the command and reports its result. Returns the process exit code.
// Adds the common options to `table`, except --json and --version if it has its own, as a verb may
// (verbs.h). With the common --json, standard output is one object, even after an error.
int RunCommand(int argc, const char* const* argv, OptionTable table, const CommandFunction& run,
               const Console& console = ProcessConsole());

// Describes a failure. An oscar::Error has its own exit code. Exhausted memory, a device error and
// a full disk have kResources. Any other exception is reported as unexpected. It has kInput,
// because bad input is its usual cause.
struct Failure {
  ExitCode exit_code;
  std::string message;
};
Failure DescribeFailure(const std::exception& error);

// Reports an error in the command line itself, in the log format that `arguments` request. Appends
// `hint` to the message. Returns the exit code.
int ReportFailure(const std::exception& error, const std::vector<std::string>& arguments,
                  const std::string& hint, const Console& console);

}  // namespace oscar
