// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/run_validate.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "capture/files/atomic_file.h"
#include "capture/files/posix_file.h"
#include "capture/files/temporary_directory.h"
#include "export/artifact/artifact_format.h"
#include "linalg/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// The exit code; its standard output is dropped, its standard error is ours.
int Run(const fs::path& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program.string());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) ThrowResource("start", program, error);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) ThrowResource("wait for", program, errno);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Json RunValidate(const ValidateRun& run, Log& log) {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "oscar-validate";
  if (!fs::exists(program)) {
    throw ResourceError(
        fmt::format("{}: no such program; measuring again needs oscar-validate beside oscar-zoo",
                    program.string()));
  }
  const TemporaryDirectory scratch("measure");
  const fs::path config = scratch.path() / "config.yaml", report = scratch.path() / "report";
  WriteFileAtomically(config, CanonicalJson(run.configuration));  // JSON is YAML
  std::vector<std::string> arguments = {
      run.artifact.string(), "--model",  run.model.string(), "--config", config.string(), "-o",
      report.string(),       "--device", run.device,         "--quiet"};
  if (!run.data.empty()) arguments.push_back("--data");
  arguments.insert(arguments.end(), run.data.begin(), run.data.end());
  log.Info("measuring", fmt::format("measuring again with {}", program.string()));
  const int code = Run(program, std::move(arguments));
  const std::string what =
      fmt::format("{}: ended with exit code {}, see above", program.string(), code);
  if (code == static_cast<int>(ExitCode::kInterrupted)) throw Interrupted(what);
  if (code == static_cast<int>(ExitCode::kResources)) throw ResourceError(what);
  if (code != 0) throw InputError("could not be measured again: " + what);
  return ReadJsonFile(report / kReportFile);
}

}  // namespace oscar
