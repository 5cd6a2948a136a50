// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Another program of ours, run to its end by one that does without LibTorch.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace oscar {

// The one that stands beside this program. ResourceError where it does not; `need` begins the
// sentence: "measuring again".
std::filesystem::path ProgramBeside(std::string_view name, std::string_view need);

// The one that PATH finds; "" where it finds none.
std::filesystem::path ProgramOnPath(const std::string& name);

// Its standard output is dropped, or goes to our standard error, which is its own too. Throws
// InputError, ResourceError or Interrupted where it does not end with exit code 0; `failed` begins
// the sentence.
enum class ChildOutput { kDropped, kToError };
void RunChild(const std::filesystem::path& program, std::vector<std::string> arguments,
              std::string_view failed, ChildOutput output = ChildOutput::kDropped);

}  // namespace oscar
