// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Identifies this build of oscar, for --version and artifacts. The commit is the one that CMake
// found when it configured the build; uncommitted changes are not shown.
#pragma once

#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

struct BuildInfo {
  std::string version;       // like "0.1.0"
  std::string git_commit;    // 40 digits, or "unknown" for a tree without .git
  std::string compiler;      // like "GNU 12.2.0"
  std::string build_type;    // like "RelWithDebInfo"
  std::string libtorch;      // like "2.11.0+cu130"
  std::string cuda_toolkit;  // like "13.0.88", or "none"
};

BuildInfo ThisBuild();

// Returns the program that makes a file: {"name", "version", "git_commit"}.
Json ProgramJson();

// Returns the lines that --version prints. The first is "<command> <version>".
std::string VersionText(const std::string& command);

}  // namespace oscar
