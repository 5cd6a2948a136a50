// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <new>
#include <sstream>
#include <stop_token>
#include <system_error>
#include <thread>

#include "linalg/base/error_context.h"
#include "tools/cli/build_info.h"
#include "tools/cli/command_line.h"
#include "tools/cli/program_docs.h"
#include "zoo/signing/trust_error.h"

namespace oscar {
namespace {

// Returns the log format that the arguments request. It is needed before they are parsed, to report
// errors in them.
LogFormat FormatAskedFor(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool split = arguments[i] == "--log-format" && i + 1 < arguments.size();
    if (arguments[i] == "--log-format=json" || (split && arguments[i + 1] == "json"))
      return LogFormat::kJson;
  }
  return LogFormat::kText;
}

void FlushResults(std::ostream& out) {
  out.flush();
  if (!out) throw ResourceError("standard output: the results could not be written");
}

std::string KindOf(ExitCode code) {
  switch (code) {
    case ExitCode::kDone:
      return "none";
    case ExitCode::kGateFailed:
      return "gate";
    case ExitCode::kUsage:
      return "usage";
    case ExitCode::kInput:
      return "input";
    case ExitCode::kResources:
      return "resources";
    case ExitCode::kInterrupted:
      return "interrupted";
  }
  return std::string(TrustKind(code));
}

void PrintFailure(const std::exception& error, std::ostream& out) {
  const Failure failure = DescribeFailure(error);
  out << Json(
             {{"error",
               {{"exit_code", static_cast<int>(failure.exit_code)}, {"message", failure.message}}}})
             .dump(1, ' ', false, Json::error_handler_t::replace)
      << std::endl;
}

std::string_view RemedyText(Remedy remedy) {
  switch (remedy) {
    case Remedy::kNone:
      return {};
    case Remedy::kStartOver:
      return "start over with --restart";
    case Remedy::kWiderFloats:
      return "try --dtype f32";
    case Remedy::kWithoutChoice:
      return "use --no-auto, which does not need it";
    case Remedy::kHoldOutMore:
      return "give more data, set --held-out above 0, or use --clip fixed and --no-auto";
    case Remedy::kOtherConsumer:
      return "name another runtime with --for";
    case Remedy::kLess:
      return "give fewer --tokens or a shorter --max-sequence";
    case Remedy::kLessAtOnce:
      return "give fewer --tokens or a shorter --max-sequence, or use --device cpu";
    case Remedy::kOtherPrompts:
      return "give other --data, or a larger --self-temperature";
    case Remedy::kShorterAnswers:
      return "give a shorter --self-length";
    case Remedy::kDumpAsHdf5:
      return "give --format hdf5";
    case Remedy::kFolded:
      return "write it with --folded";
    case Remedy::kNotFolded:
      return "write it without --folded";
    case Remedy::kSeePlan:
      return "--dry-run prints what is needed";
  }
  return {};
}

// Returns true when `patience` has passed since a stop was requested, and false when the command
// has finished.
bool WaitForStop(const StopSignal& stop, std::chrono::milliseconds patience,
                 const std::stop_token& finished) {
  constexpr std::chrono::milliseconds kLook{50};
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  for (std::chrono::milliseconds waited{0}; waited < patience;) {
    if (woken.wait_for(lock, finished, kLook, [&] { return finished.stop_requested(); }))
      return false;
    if (stop.requested()) waited += kLook;
  }
  return true;
}

void Report(Log* log, const Failure& failure, const std::string& hint) {
  Json fields = {{"exit_code", static_cast<int>(failure.exit_code)},
                 {"kind", KindOf(failure.exit_code)}};
  if (!hint.empty()) fields["hint"] = hint;
  log->Error("failed", hint.empty() ? failure.message : failure.message + "; " + hint, fields);
}

}  // namespace

void AddCommonOptions(CommonOptions* common, OptionTable* table) {
  constexpr auto kFlag = OptionScope::kCommandLine;
  table->Group(std::string(kCommonGroup));
  table->Add(&common->config, {.name = "config",
                               .help = "read options from this YAML file; flags override it",
                               .unit = "file",
                               .scope = kFlag,
                               .path = true});
  table->Add(&common->print_config,
             {.name = "print_config",
              .help = "print the resolved configuration as YAML that --config reads, and stop",
              .scope = kFlag});
  table->Add(&common->dry_run, {.name = "dry_run",
                                .help = "print what would be done and what it needs, and stop",
                                .scope = kFlag,
                                .main = true});
  table->Add(&common->quiet, {.name = "quiet",
                              .help = "print only errors and the path of the result",
                              .short_name = 'q',
                              .scope = kFlag});
  table->AddChoice(&common->log_format, {{"text", LogFormat::kText}, {"json", LogFormat::kJson}},
                   {.name = "log_format",
                    .help = "how to report on standard error; json is one object per line",
                    .scope = OptionScope::kRun});
  if (!table->Has("json")) {
    table->Add(&common->json,
               {.name = "json",
                .help = "print the result, or the error, as one JSON object on standard output",
                .scope = kFlag,
                .main = true});
  }
  if (!table->Has("version")) {
    table->Add(&common->version,
               {.name = "version", .help = "print the version, and stop", .scope = kFlag});
  }
  table->Add(&common->help, {.name = "help",
                             .help = "print the options that matter most, and stop",
                             .short_name = 'h',
                             .scope = kFlag});
  table->Add(&common->help_all,
             {.name = "help_all", .help = "print all options, and stop", .scope = kFlag});
}

Failure DescribeFailure(const std::exception& error) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) {
    const std::string_view remedy = RemedyText(known->remedy());
    return {known->exit_code(),
            remedy.empty() ? known->what() : fmt::format("{}; {}", known->what(), remedy)};
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return {ExitCode::kResources, fmt::format("out of memory; {}", RemedyText(Remedy::kSeePlan))};
  const std::string text = FirstWords(error);
  if (const auto* system = dynamic_cast<const std::system_error*>(&error))
    return {system->code() == std::errc::no_such_file_or_directory ? ExitCode::kInput
                                                                   : ExitCode::kResources,
            text};
  if (IsResourceFailure(text))
    return {ExitCode::kResources, fmt::format("{}; {}", text, RemedyText(Remedy::kSeePlan))};
  return {ExitCode::kInput,
          "unexpected failure; this is a bug in oscar, please report it: " + text};
}

int ReportFailure(const std::exception& error, const std::vector<std::string>& arguments,
                  const std::string& hint, const Console& console) {
  Log log(console, FormatAskedFor(arguments), false);
  Report(&log, DescribeFailure(error), hint);
  return static_cast<int>(DescribeFailure(error).exit_code);
}

int RunCommand(int argc, const char* const* argv, OptionTable table, const CommandFunction& run,
               const Console& console) {
  std::signal(SIGXFSZ, SIG_IGN);  // writes beyond `ulimit -f` fail with EFBIG, as on a full disk
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  CommonOptions common;
  const bool own_json = table.Has("json");
  AddCommonOptions(&common, &table);
  common.log_format = FormatAskedFor(arguments);
  common.json = !own_json && std::ranges::find(arguments, "--json") != arguments.end();
  std::string hint = fmt::format("see {} --help", table.command());
  try {
    if (const auto docs = DocsAskedFor({table.command(), table.summary(), {table}}, arguments)) {
      *console.out << *docs;
      FlushResults(*console.out);
      return static_cast<int>(ExitCode::kDone);
    }
    const std::vector<GivenFlag> flags = SplitCommandLine(table, arguments);
    for (const GivenFlag& flag : flags)  // --config first, because every flag overrides the file
      if (flag.name == "config") table.ApplyFlags(flag.name, flag.values);
    if (!common.config.empty()) table.ApplyConfig(ReadConfigFile(common.config), common.config);
    for (const GivenFlag& flag : flags) table.ApplyFlags(flag.name, flag.values);
    std::string text;
    if (common.help || common.help_all) {
      text = HelpText(table, std::clamp(console.out_columns, 60, 100), common.help_all);
    } else if (common.version) {
      text = VersionText(table.command());
    } else if (common.print_config) {
      text = table.ToYaml();
    }
    if (!text.empty()) {
      *console.out << text;
      FlushResults(*console.out);
      return static_cast<int>(ExitCode::kDone);
    }
    table.CheckRequired();
    table.CheckEffects();
  } catch (const std::exception& error) {
    Log log(console, common.log_format, common.quiet);
    if (common.json) PrintFailure(error, *console.out);
    Report(&log, DescribeFailure(error), hint);
    return static_cast<int>(DescribeFailure(error).exit_code);
  }

  Log log(console, common.log_format, common.quiet || console.only_errors);
  Progress progress(&log);
  const std::string notice = "stopping after this layer; interrupt again to stop at once";
  const StopSignal stop(
      console.follows ? ""
      : common.log_format == LogFormat::kJson
          ? LogLineJson(LogLevel::kInfo, "stopping", notice, Json::object(), console.utc()) + "\n"
          : "\n" + notice + "\n");
  hint.clear();
  std::ostringstream text;  // output for people
  // Reports why the command failed. Returns the exit code.
  const auto fail = [&](const std::exception& error) {
    progress.End();
    if (common.json) {
      PrintFailure(error, *console.out);
    } else {
      *console.out << text.str() << std::flush;
    }
    const Failure failure = DescribeFailure(error);
    if (failure.exit_code == ExitCode::kInterrupted)
      hint = "to resume: " + ResumeCommand(table, argc > 0 ? argv[0] : table.command(), arguments);
    Report(&log, failure, hint);
    return static_cast<int>(failure.exit_code);
  };
  std::jthread impatient;
  const auto stop_within = [&](std::chrono::milliseconds patience) {
    impatient = std::jthread([&, patience](const std::stop_token& finished) {
      if (WaitForStop(stop, patience, finished))
        std::_Exit(fail(Interrupted("stopped; results saved so far are kept")));
    });
  };
  try {
    CommandContext context{text, log, progress, stop, table.Stored(), common.dry_run, stop_within};
    CommandResult result = run(context);
    impatient = std::jthread();  // no message may appear after this
    progress.End();
    if (common.json) {
      result.json["exit_code"] = static_cast<int>(result.exit_code);
      result.json["path"] = result.made.empty() ? Json() : Json(result.made);
      *console.out << CanonicalJson(result.json);
    } else {
      if (!common.quiet || result.made.empty()) *console.out << text.str();
      if (!result.made.empty()) *console.out << result.made << '\n';
    }
    FlushResults(*console.out);
    return static_cast<int>(result.exit_code);
  } catch (const std::exception& error) {
    impatient = std::jthread();
    return fail(error);
  }
}

}  // namespace oscar
