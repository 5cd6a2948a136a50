// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a program will write, looked at before it does anything for it: nobody wants to learn after
// an hour that the directory is not there, or the disk too small.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace oscar {

// Nothing may be at `path`, and its directory must be there (unless `makes_folders`: the nearest
// that is) and let files be made. Throws InputError or ResourceError.
void CheckNewOutput(const std::filesystem::path& path, bool makes_folders = false);

// What is wrong with writing `bytes` to `path`, whose directories may be still to be made; or "".
// `what` is the subject: "the dump".
std::string SpaceProblem(const std::filesystem::path& path, uint64_t bytes,
                         const std::string& what);
void CheckSpace(const std::filesystem::path& path, uint64_t bytes, const std::string& what);

}  // namespace oscar
