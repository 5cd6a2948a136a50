// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/run_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <sstream>

#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

fs::path Stream(const fs::path& log, const char* name) { return log.string() + name; }

std::string TakeText(const fs::path& path) {
  const std::string text = ReadText(path);
  fs::remove(path);
  return text;
}

}  // namespace

testing::AssertionResult Exits(const ProgramExit& exit, int code, std::string_view said) {
  if (exit.code == code && exit.err.find(said) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "exit code " << exit.code << ", expected " << code
                                     << " and \"" << said << "\"; it said\n"
                                     << exit.all();
}

ProgramStrings Words(const std::string& line, const ProgramStrings& values) {
  std::istringstream stream(line);
  ProgramStrings words{std::istream_iterator<std::string>(stream), {}};
  auto value = values.begin();
  for (std::string& word : words)
    if (word == "%") word = *value++;
  return words;
}

ProgramStrings operator+(ProgramStrings first, const ProgramStrings& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

pid_t StartProgram(const std::string& program, const ProgramStrings& arguments,
                   const ProgramStrings& environment, const fs::path& log) {
  const pid_t child = fork();
  if (child != 0) return child;
  // By default, AddressSanitizer refuses to start if another library is preloaded before it.
  setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
  for (const std::string& variable : environment) putenv(const_cast<char*>(variable.c_str()));
  dup2(open(Stream(log, ".out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), 1);
  dup2(open(Stream(log, ".err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), 2);
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  _exit(127);
}

ProgramExit WaitForProgram(pid_t child, const fs::path& log) {
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          TakeText(Stream(log, ".out")), TakeText(Stream(log, ".err"))};
}

ProgramExit RunProgram(const std::string& program, const ProgramStrings& arguments,
                       const ProgramStrings& environment) {
  const fs::path log = fs::path(testing::TempDir()) / ("program-" + std::to_string(getpid()));
  return WaitForProgram(StartProgram(program, arguments, environment, log), log);
}

}  // namespace oscar
