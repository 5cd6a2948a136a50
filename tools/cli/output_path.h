// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks an output path before any work, so that a run does not fail after an hour because the
// directory is missing or the disk is too small.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace oscar {

// Throws InputError or ResourceError if `path` exists, or if files cannot be created in its
// directory (with `makes_folders`: in the nearest existing parent).
void CheckNewOutput(const std::filesystem::path& path, bool makes_folders = false);

// Returns why `bytes` cannot be written to `path`, or "". Its directories may not exist yet. `what`
// is the subject of the message, like "the dump".
std::string SpaceProblem(const std::filesystem::path& path, uint64_t bytes,
                         const std::string& what);
void CheckSpace(const std::filesystem::path& path, uint64_t bytes, const std::string& what);

}  // namespace oscar
