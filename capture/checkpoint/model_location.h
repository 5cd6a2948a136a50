// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// MODEL on a command line: a directory, a GGUF file, or an id like "Qwen/Qwen3-8B[@revision]" that
// is looked up in the local Hugging Face cache. Nothing is ever downloaded and no revision is
// guessed; an error names the download command.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace oscar {

struct ModelLocation {
  // The directory with config.json and the weights, or the GGUF file itself (model_config.h,
  // checkpoint.h).
  std::filesystem::path directory;
  std::string id;        // "Qwen/Qwen3-8B", or the name of the directory or file
  std::string revision;  // 40-digit commit, or "" for a plain directory
};

// Reads an environment variable; tests pass their own.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
Environment ProcessEnvironment();

// Throws InputError if MODEL cannot be resolved or is incomplete (no config.json, no weights if
// `needs_weights`, dangling link).
ModelLocation ResolveModel(std::string_view model,
                           const Environment& environment = ProcessEnvironment(),
                           bool needs_weights = true);

}  // namespace oscar
