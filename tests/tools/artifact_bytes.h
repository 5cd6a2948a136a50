// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Returns the bytes of every file of an artifact, by path, so that tests can compare artifacts.
// Leaves out timings.json, which differs between runs.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace oscar {

inline std::map<std::string, std::string> ArtifactBytes(const std::filesystem::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file() || entry.path().filename() == "timings.json") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[std::filesystem::relative(entry.path(), directory)] = {
        std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

}  // namespace oscar
