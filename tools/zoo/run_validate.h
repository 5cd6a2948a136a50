// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-validate, which stands beside this program, run on an artifact as a report says that it was
// run before. A process of its own: it has LibTorch, and its configuration is read as it was.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "tools/cli/log.h"

namespace oscar {

struct ValidateRun {
  std::filesystem::path artifact, model;
  Json configuration;             // what --config takes
  std::vector<std::string> data;  // empty: the built-in text
  std::string device = "auto";
};

// The report. Throws InputError or ResourceError where oscar-validate fails (it says why on
// standard error), Interrupted where it was interrupted.
Json RunValidate(const ValidateRun& run, Log& log);

}  // namespace oscar
