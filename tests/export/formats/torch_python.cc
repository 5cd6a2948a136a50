// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/formats/torch_python.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>

namespace oscar {
namespace {

// Returns the standard output and the exit status of a shell command.
std::pair<std::string, int> Run(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {"", -1};
  char buffer[4096];
  while (const size_t size = std::fread(buffer, 1, sizeof(buffer), pipe)) {
    output.append(buffer, size);
  }
  return {output, pclose(pipe)};
}

}  // namespace

std::optional<std::string> RunTorchCheck(const std::string& arguments) {
  // Python must not preload the sanitizers' runtime.
  const std::string python = std::string("env -u LD_PRELOAD '") + OSCAR_PYTHON + "' ";
  const std::string script = std::string("'") + OSCAR_TORCH_SCRIPT + "' ";
  const auto [output, status] = Run(python + script + arguments + " 2>&1");
  constexpr int kNoTorch = 77, kNoPython = 127;
  if (WIFEXITED(status) && (WEXITSTATUS(status) == kNoTorch || WEXITSTATUS(status) == kNoPython)) {
    return std::nullopt;
  }
  EXPECT_EQ(status, 0) << output;
  return output;
}

}  // namespace oscar
