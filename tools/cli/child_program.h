// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs another program of this package to its end, for programs without LibTorch.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace oscar {

// The path of the program beside this one. Throws ResourceError if there is none; `need` begins the
// sentence: "measuring again".
std::filesystem::path ProgramBeside(std::string_view name, std::string_view need);

// The path of the program that PATH finds, or "".
std::filesystem::path ProgramOnPath(const std::string& name);

// Runs a program; its standard output is dropped or goes to our standard error, which it shares.
// Throws InputError, ResourceError or Interrupted if the exit code is not 0; `failed` begins the
// sentence.
enum class ChildOutput { kDropped, kToError };
void RunChild(const std::filesystem::path& program, std::vector<std::string> arguments,
              std::string_view failed, ChildOutput output = ChildOutput::kDropped);

}  // namespace oscar
