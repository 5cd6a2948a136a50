// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Starts the real programs, as a user would, with variables added to the environment (a library
// that kills them, for example). Trap: forks; a test that runs threads must have joined them.
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
  int signal = 0;  // that killed it
  std::string out, err;
  std::string all() const { return err + out; }
};

// Returns whether it ended with this code, and wrote `said` to stderr.
testing::AssertionResult Exits(const ProgramExit& exit, int code, std::string_view said = "");

using ProgramStrings = std::vector<std::string>;

// Splits a command line at spaces; each word "%" stands for the next of `values`.
ProgramStrings Words(const std::string& line, const ProgramStrings& values = {});
ProgramStrings operator+(ProgramStrings first, const ProgramStrings& then);

// `environment`: NAME=VALUE. Output goes to the files LOG.out and LOG.err.
pid_t StartProgram(const std::string& program, const ProgramStrings& arguments,
                   const ProgramStrings& environment, const std::filesystem::path& log);
ProgramExit WaitForProgram(pid_t child, const std::filesystem::path& log);  // removes the files

ProgramExit RunProgram(const std::string& program, const ProgramStrings& arguments,
                       const ProgramStrings& environment = {});

}  // namespace oscar
