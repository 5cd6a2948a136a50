// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/model_location.h"

#include <fmt/format.h>

#include <cstdlib>
#include <system_error>

#include "capture/checkpoint/gguf/gguf_model.h"
#include "capture/checkpoint/hub_cache.h"
#include "capture/checkpoint/weight_files.h"
#include "capture/files/quote.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

// Checks that everything that a calibration opens exists. Weights are found but not read.
void RequireComplete(const fs::path& directory, bool needs_weights) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    std::error_code ignored;
    if (entry.is_symlink() && !fs::exists(entry.path(), ignored)) RequireRegularFile(entry.path());
  }
  if (const std::string else_there = WhatElseIsIn(directory);
      !fs::exists(directory / "config.json") && !else_there.empty())
    throw InputError(
        fmt::format("{} is missing{}", (directory / "config.json").string(), else_there));
  RequireRegularFile(directory / "config.json");
  if (needs_weights || HasWeightFiles(directory)) FindWeightFiles(directory);
}

ModelLocation FromGguf(const fs::path& path) { return {path, path.stem().string(), ""}; }

// The GGUF in a directory without config.json; empty if there is none.
fs::path OnlyGguf(const fs::path& directory) {
  std::error_code ignored;
  return fs::exists(directory / "config.json", ignored) ? fs::path() : FindGgufIn(directory);
}

ModelLocation FromDirectory(const fs::path& directory, bool needs_weights) {
  try {
    if (const fs::path gguf = OnlyGguf(directory); !gguf.empty()) return FromGguf(gguf);
    RequireComplete(directory, needs_weights);
  } catch (const fs::filesystem_error& error) {
    throw InputError(fmt::format("cannot list {}: {}", directory.string(), error.code().message()));
  } catch (const InputError& error) {
    throw InputError(
        fmt::format("{} is not a complete model directory: {}", directory.string(), error.what()));
  }
  const fs::path absolute = fs::canonical(directory);
  ModelLocation location{directory, absolute.filename().string(), ""};
  if (const auto identity = SnapshotIdentity(absolute)) {
    std::tie(location.id, location.revision) = *identity;
  }
  return location;
}

ModelLocation FromCache(const HubId& id, const Environment& environment, bool needs_weights) {
  const fs::path snapshot = FindSnapshot(HubCacheRoot(environment), id);
  try {
    if (const fs::path gguf = OnlyGguf(snapshot); !gguf.empty())
      return {gguf, id.repository, snapshot.filename().string()};
    RequireComplete(snapshot, needs_weights);
  } catch (const fs::filesystem_error& error) {
    throw InputError(fmt::format("cannot list {}: {}", snapshot.string(), error.code().message()));
  } catch (const InputError& error) {
    throw InputError(fmt::format("the cached copy of {} is incomplete: {}; run: {}", id.repository,
                                 error.what(), DownloadCommand(id)));
  }
  return {snapshot, id.repository, snapshot.filename().string()};
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

ModelLocation ResolveModel(std::string_view model, const Environment& environment,
                           bool needs_weights) {
  std::error_code ignored;
  const bool has_nul = model.find('\0') != model.npos;
  const fs::path path(has_nul ? std::string_view() : model);
  if (fs::is_directory(path, ignored)) return FromDirectory(path, needs_weights);
  if (IsGgufPath(path)) return FromGguf(path);
  if (fs::exists(path, ignored)) {
    throw InputError(
        fmt::format("{} is a file; give a .gguf file, or the directory that holds "
                    "config.json and the weights",
                    path.string()));
  }
  if (const auto id = ParseHubId(model)) return FromCache(*id, environment, needs_weights);
  throw InputError(
      fmt::format("{} is neither an existing directory nor a model id like "
                  "Qwen/Qwen3-8B or Qwen/Qwen3-8B@REVISION",
                  Quoted(model)));
}

}  // namespace oscar
