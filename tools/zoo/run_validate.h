// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs oscar-validate, which is installed beside this program, with the configuration of an earlier
// run. It is a separate process, because only it loads LibTorch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "tools/cli/log.h"

namespace oscar {

struct ValidateRun {
  std::filesystem::path artifact, model;
  Json configuration;             // passed as --config
  std::vector<std::string> data;  // empty: the built-in text
  std::string device = "auto";
};

// Returns the report. Throws InputError or ResourceError if oscar-validate fails, after its own
// message on standard error, and Interrupted if it was interrupted.
Json RunValidate(const ValidateRun& run, Log& log);

}  // namespace oscar
