// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/child_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "capture/files/posix_file.h"
#include "linalg/base/error.h"
#include "tools/cli/command.h"  // ExitCode

namespace fs = std::filesystem;

namespace oscar {
namespace {

int ExitCodeOf(const fs::path& program, std::vector<std::string> arguments, ChildOutput output) {
  arguments.insert(arguments.begin(), program.string());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (output == ChildOutput::kToError) {
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
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

fs::path ProgramBeside(std::string_view name, std::string_view need) {
  const fs::path self = fs::read_symlink("/proc/self/exe"), program = self.parent_path() / name;
  if (fs::exists(program)) return program;
  throw ResourceError(fmt::format("{}: no such program; {} needs {} in the same directory as {}",
                                  program.string(), need, name, self.filename().string()));
}

fs::path ProgramOnPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path program = fs::path(folder) / name;
    if (!folder.empty() && fs::is_regular_file(program) && access(program.c_str(), X_OK) == 0)
      return program;
  }
  return {};
}

void RunChild(const fs::path& program, std::vector<std::string> arguments, std::string_view failed,
              ChildOutput output) {
  const int code = ExitCodeOf(program, std::move(arguments), output);
  if (code == 0) return;
  const std::string what = fmt::format("{}: failed with exit code {}; its error is printed above",
                                       program.string(), code);
  if (code == static_cast<int>(ExitCode::kInterrupted)) throw Interrupted(what);
  if (code == static_cast<int>(ExitCode::kResources)) throw ResourceError(what);
  throw InputError(fmt::format("{}: {}", failed, what));
}

}  // namespace oscar
