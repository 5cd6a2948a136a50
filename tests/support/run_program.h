// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Starts the real programs as a user would, with variables added to the environment (for example to
// preload a library that kills them). Trap: this forks, so a test must first join its threads.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace oscar {

struct ProgramExit {
  int code = -1;   // -1 if killed
  int signal = 0;  // 0 if not killed
  std::string out, err;
  std::string all() const { return err + out; }
};

// Returns whether the program exited with `code` and wrote `said` to stderr.
testing::AssertionResult Exits(const ProgramExit& exit, int code, std::string_view said = "");

using ProgramStrings = std::vector<std::string>;

// Splits a command line at spaces and replaces each word "%" by the next of `values`.
ProgramStrings Words(const std::string& line, const ProgramStrings& values = {});
ProgramStrings operator+(ProgramStrings first, const ProgramStrings& then);

// Starts a program with `environment` (NAME=VALUE strings) added to its environment. Its output
// goes to the files LOG.out and LOG.err.
pid_t StartProgram(const std::string& program, const ProgramStrings& arguments,
                   const ProgramStrings& environment, const std::filesystem::path& log);
ProgramExit WaitForProgram(pid_t child, const std::filesystem::path& log);  // removes both files

ProgramExit RunProgram(const std::string& program, const ProgramStrings& arguments,
                       const ProgramStrings& environment = {});

}  // namespace oscar
