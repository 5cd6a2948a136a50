// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests a command from argv to exit code: what it prints where, on success and for each kind of
// failure.
#include "tools/cli/command.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "linalg/base/error_context.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"
#include "tests/tools/cli/sample_command.h"

namespace oscar {
namespace {

Outcome RunBrew(std::vector<std::string> arguments, const CommandFunction& function,
                BrewOptions* options) {
  return RunCaptured("oscar-brew", arguments,
                     [&](int argc, const char* const* argv, const Console& console) {
                       return RunCommand(argc, argv, BrewTable(options), function, console);
                     });
}

Outcome RunBrew(std::vector<std::string> arguments, const CommandFunction& function) {
  BrewOptions options;
  return RunBrew(std::move(arguments), function, &options);
}

CommandResult Nothing(CommandContext&) { return {}; }

template <typename Failing>
Outcome RunThrowing(const Failing& failure, std::vector<std::string> arguments = {"bean"}) {
  return RunBrew(std::move(arguments), [&](CommandContext&) -> CommandResult { throw failure; });
}

TEST(Command, PrintsResultsAndLastThePathOfWhatWasMade) {
  BrewOptions options;
  const Outcome o = RunBrew(
      {"arabica", "-n", "3"},
      [&](CommandContext& context) -> CommandResult {
        EXPECT_EQ(options.cups, 3);
        EXPECT_EQ(context.config.at("cups"), 3);
        EXPECT_FALSE(context.dry_run);
        context.log.Info("note", "brewing");
        context.out << "a table\n";
        return {.made = "cup/of/coffee"};
      },
      &options);
  EXPECT_EQ(o.exit_code, 0);
  EXPECT_EQ(o.out, "a table\ncup/of/coffee\n");
  EXPECT_EQ(o.err, "brewing\n");
}

CommandResult MakeCup(CommandContext& context) {
  context.log.Info("note", "brewing");
  context.out << "a table\n";
  return {.exit_code = ExitCode::kGateFailed, .made = "cup", .json = {{"grams", 12}}};
}

TEST(Command, QuietPrintsThePathAlone) {
  const Outcome o = RunBrew({"arabica", "-q"}, MakeCup);
  EXPECT_EQ(o.out, "cup\n");
  EXPECT_EQ(o.err, "");
  // If a command makes nothing, its printed text is the result.
  const auto look = [](CommandContext& context) -> CommandResult {
    context.out << "a look\n";
    return {};
  };
  EXPECT_EQ(RunBrew({"arabica", "-q"}, look).out, "a look\n");
}

TEST(Command, JsonPrintsOneObjectAlsoOfAnError) {
  const Outcome o = RunBrew({"arabica", "--json"}, MakeCup);
  EXPECT_EQ(Json::parse(o.out), (Json{{"grams", 12}, {"path", "cup"}, {"exit_code", 1}}));
  const Json input = Json::parse(RunThrowing(InputError("x: bad"), {"bean", "--json"}).out);
  EXPECT_EQ(input, (Json{{"error", {{"exit_code", 3}, {"message", "x: bad"}}}}));
  const Json usage = Json::parse(RunBrew({"bean", "--json", "-n", "0"}, MakeCup).out);
  EXPECT_EQ(usage.at("error").at("exit_code"), 2);
}

TEST(Command, ExitCodesByKindOfFailure) {
  const auto failed_gate = [](CommandContext&) {
    return CommandResult{.exit_code = ExitCode::kGateFailed};
  };
  EXPECT_EQ(RunBrew({"bean"}, failed_gate).exit_code, 1);
  EXPECT_EQ(RunThrowing(UsageError("u")).exit_code, 2);
  EXPECT_EQ(RunThrowing(InputError("file.x: bad")).exit_code, 3);
  EXPECT_EQ(RunThrowing(InputError("file.x: bad")).err, "error: file.x: bad\n");
  EXPECT_EQ(RunThrowing(NumericalError("n")).exit_code, 3);
  EXPECT_EQ(RunThrowing(ResourceError("r")).exit_code, 4);
  EXPECT_EQ(RunThrowing(std::bad_alloc()).exit_code, 4);
  EXPECT_EQ(RunThrowing(std::runtime_error("CUDA out of memory. Tried\nframe #0")).exit_code, 4);
  EXPECT_EQ(RunThrowing(std::runtime_error("CUDA out of memory. Tried\nframe #0")).err,
            "error: CUDA out of memory. Tried; --dry-run prints what is needed\n");
  EXPECT_EQ(
      RunThrowing(std::runtime_error("[enforce fail] DefaultCPUAllocator: can't allocate memory"))
          .exit_code,
      4);
  EXPECT_EQ(RunThrowing(std::system_error(ENOSPC, std::generic_category(), "f")).exit_code, 4);
  EXPECT_EQ(RunThrowing(std::system_error(ENOENT, std::generic_category(), "f")).exit_code, 3);
  EXPECT_EQ(RunThrowing(std::logic_error("vector::at")).exit_code, 3);
  EXPECT_TRUE(Says(RunThrowing(std::logic_error("vector::at")).err, "bug in oscar"));
}

TEST(Command, AFailureOfADeviceOrOfMemoryNamesWhatWasBeingDone) {
  const auto failing = [](const auto& error) {
    return RunBrew({"bean"}, [&](CommandContext&) -> CommandResult {
      return WithErrorContext("running layer 3", [&]() -> CommandResult { throw error; });
    });
  };
  const auto launch = failing(std::runtime_error("CUDA error: unspecified launch failure\nframe"));
  EXPECT_EQ(launch.exit_code, 4);
  EXPECT_EQ(launch.err,
            "error: running layer 3: CUDA error: unspecified launch failure; --dry-run prints what "
            "is needed\n");
  EXPECT_EQ(
      failing(std::runtime_error("CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a "
                                 "total capacity of 79 GiB of which 16.00 MiB is free. "
                                 "Process 2 has 7 GiB memory in use"))
          .err,
      "error: running layer 3: CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total "
      "capacity of 79 GiB of which 16.00 MiB is free; --dry-run prints what is needed\n");
  EXPECT_EQ(failing(std::bad_alloc()).err,
            "error: running layer 3: out of memory; --dry-run prints what is needed\n");
  EXPECT_EQ(failing(InputError("file.x: bad")).err, "error: file.x: bad\n");
  EXPECT_TRUE(Says(failing(std::logic_error("vector::at")).err, "bug in oscar"));
}

TEST(Command, UsageErrorsPointToTheHelpAndDoNotRun) {
  const auto forbidden = [](CommandContext&) -> CommandResult {
    ADD_FAILURE() << "ran";
    return {};
  };
  const Outcome o = RunBrew({"bean", "--cpus", "2"}, forbidden);
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_EQ(o.out, "");
  EXPECT_EQ(o.err,
            "error: oscar-brew has no flag --cpus; the nearest is --cups, --pours, --jars; see "
            "oscar-brew "
            "--help\n");
  EXPECT_EQ(RunBrew({}, forbidden).exit_code, 2);
  EXPECT_EQ(RunBrew({"--help"}, forbidden).exit_code, 0);
  EXPECT_EQ(RunBrew({"--version"}, forbidden).out.substr(0, 11), "oscar-brew ");
}

TEST(Command, InterruptionPrintsTheCommandThatResumes) {
  const Outcome o =
      RunThrowing(Interrupted("interrupted: layer 3 is finished"), {"my bean", "--restart"});
  EXPECT_EQ(o.exit_code, 130);
  EXPECT_EQ(o.err, "error: interrupted: layer 3 is finished; to resume: oscar-brew 'my bean'\n");
}

TEST(Command, JsonErrorsAreOneObject) {
  Outcome o = RunThrowing(InputError("bad"), {"bean", "--log-format", "json"});
  EXPECT_EQ(Json::parse(o.err).at("message"), "bad");
  EXPECT_EQ(Json::parse(o.err).at("fields"), (Json{{"exit_code", 3}, {"kind", "input"}}));
  o = RunBrew({"bean", "--nonsense", "--log-format=json"},
              Nothing);  // fails before options are parsed
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_EQ(Json::parse(o.err).at("fields").at("kind"), "usage");
}

TEST(Command, ConfigFileThenFlagsThenPrintConfigRoundTrip) {
  const auto folder = TestScratch("command");
  const std::string file = (folder / "brew.yaml").string();
  std::ofstream(file) << "bean: arabica\ncups: 3\nmilk: true\n";
  const Outcome first = RunBrew({"--cups", "4", "--config", file, "--print-config"}, Nothing);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(Says(first.out, "\ncups: 4\n"));
  EXPECT_TRUE(Says(first.out, "\nmilk: true\n"));
  EXPECT_FALSE(Says(first.out, "dry_run"));
  const std::string printed = (folder / "printed.yaml").string();
  std::ofstream(printed) << first.out;
  EXPECT_EQ(RunBrew({"--config", printed, "--print-config"}, Nothing).out, first.out);

  std::ofstream(file) << "bean: x\ndry_run: true\n";
  EXPECT_EQ(RunBrew({"--config", file}, Nothing).err,
            "error: " + file +
                ":2: dry_run: can only be given as the flag --dry-run; see oscar-brew --help\n");
}

TEST(Command, AFullStandardOutputIsAnError) {
  std::ofstream full("/dev/full");
  std::ostringstream err;
  Console console;
  console.out = &full;
  console.err = &err;
  const char* argv[] = {"oscar-brew", "bean"};
  BrewOptions options;
  const auto print = [](CommandContext& context) -> CommandResult {
    context.out << "result\n";
    return {};
  };
  EXPECT_EQ(RunCommand(2, argv, BrewTable(&options), print, console), 4);
}

TEST(Command, FirstSignalAsksSecondKills) {
  const auto stopped = [](CommandContext& context) -> CommandResult {
    EXPECT_FALSE(context.stop.requested());
    context.stop.ThrowIfRequested("nothing was asked");
    std::raise(SIGTERM);
    EXPECT_TRUE(context.stop.requested());
    context.stop.ThrowIfRequested("layer 1 of 2 is finished");
    return {};
  };
  const Outcome o = RunBrew({"bean"}, stopped);
  EXPECT_EQ(o.exit_code, 130);
  EXPECT_TRUE(Says(o.err, "layer 1 of 2 is finished; to resume: oscar-brew bean"));
  EXPECT_EXIT(RunBrew({"bean"},
                      [](CommandContext&) -> CommandResult {
                        std::raise(SIGINT);
                        std::raise(SIGINT);
                        return {};
                      }),
              testing::KilledBySignal(SIGINT), "stopping after this layer");
}

// A stop ends the command wherever it is. A command that finishes in time is not affected.
TEST(Command, AStopIsObeyedAfterItsTime) {
  const auto run = [](std::chrono::milliseconds works) {
    return RunBrew({"bean"}, [works](CommandContext& context) -> CommandResult {
      context.stop_within(std::chrono::milliseconds(200));
      std::raise(SIGINT);
      std::this_thread::sleep_for(works);
      return {};
    });
  };
  EXPECT_EXIT(run(std::chrono::seconds(60)), testing::ExitedWithCode(130), "stopping after");
  EXPECT_EQ(run(std::chrono::milliseconds(1)).exit_code, 0);
}

TEST(Command, HandlersAreGoneAfterwards) {
  RunBrew({"bean"}, Nothing);
  EXPECT_EXIT(std::raise(SIGTERM), testing::KilledBySignal(SIGTERM), "^$");
}

}  // namespace
}  // namespace oscar
