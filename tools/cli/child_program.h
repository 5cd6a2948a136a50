// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs another program of this package and waits for it. Programs without LibTorch use this to run
// one that has it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace oscar {

// Returns the path of a program in the folder of this one. Throws ResourceError if it is missing;
// `need` begins the message, for example "measuring again".
std::filesystem::path ProgramBeside(std::string_view name, std::string_view need);

// Returns the path of a program found through PATH, or "".
std::filesystem::path ProgramOnPath(const std::string& name);

// Runs a program with our standard error. Its standard output is dropped or also goes to standard
// error. Throws InputError, ResourceError or Interrupted if its exit code is not 0; `failed` begins
// the message of InputError.
enum class ChildOutput { kDropped, kToError };
void RunChild(const std::filesystem::path& program, std::vector<std::string> arguments,
              std::string_view failed, ChildOutput output = ChildOutput::kDropped);

}  // namespace oscar
