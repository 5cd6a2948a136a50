// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Recognizes the schema of a .pt file by its content, and opens directories of MLA layers. The file
// name gives only the layer id of an MLA layer, which is stored nowhere else.
#include "export/formats/rotation_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "export/formats/rotation_checks.h"
#include "export/formats/rotation_schemas.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Returns the id in "layer_<id>.pt", or nothing.
std::optional<int64_t> MlaLayerId(const std::filesystem::path& path) {
  constexpr std::string_view kPrefix = "layer_";
  const std::string stem = path.stem().string();
  if (path.extension() != ".pt" || !stem.starts_with(kPrefix)) return std::nullopt;
  return ParseLayerId(std::string_view(stem).substr(kPrefix.size()));
}

std::vector<std::pair<int64_t, std::filesystem::path>> MlaFiles(
    const std::filesystem::path& directory) {
  std::vector<std::pair<int64_t, std::filesystem::path>> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (const auto id = MlaLayerId(entry.path())) files.emplace_back(*id, entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string_view RotationKindName(RotationKind kind) {
  static constexpr std::string_view kNames[] = {"v1",         "v2",     "v3",      "identity-v1",
                                                "layers",     "flat",   "stacked", "mla-layer",
                                                "mla-folder", "moments"};
  return kNames[static_cast<size_t>(kind)];
}

std::optional<int64_t> ParseLayerId(std::string_view text) {
  int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0 ||
      id > std::numeric_limits<int32_t>::max() || std::to_string(id) != text) {
    return std::nullopt;
  }
  return id;
}

RotationFile ReadRotationFile(const PtFile& file) {
  std::string supported;
  for (const RotationSchema& schema : RotationSchemas()) {
    if (schema.matches(file.root())) return schema.read(file);
    supported += fmt::format("\n  {}", schema.holds);
  }
  throw InputError(fmt::format("{}: contains a {}, but only these contents are known:{}",
                               file.path().string(), PtTypeName(file.root()), supported));
}

RotationFile OpenRotationFile(const std::filesystem::path& path) {
  return ReadRotationFile(PtFile::Open(path));
}

bool IsMlaFolder(const std::filesystem::path& directory) {
  return std::filesystem::is_directory(directory) && !MlaFiles(directory).empty();
}

RotationFile OpenMlaFolder(const std::filesystem::path& directory) {
  RotationFile out;
  out.kind = RotationKind::kMlaFolder;
  out.path = directory;
  for (const auto& [id, path] : MlaFiles(directory)) {
    RotationFile file = OpenRotationFile(path);
    if (file.kind != RotationKind::kMlaLayer) {
      throw InputError(fmt::format("{}: expected one layer of a latent cache, found {}",
                                   path.string(), RotationKindName(file.kind)));
    }
    if (out.layers.empty()) {
      out.transform = file.transform;
    } else if (file.layers[0].rotation->shape != out.layers[0].rotation->shape) {
      throw InputError(fmt::format("{}: has {} latent dimensions, but the layers before it have {}",
                                   path.string(), file.layers[0].rotation->shape[0],
                                   out.layers[0].rotation->shape[0]));
    }
    out.layers.push_back(std::move(file.layers[0]));
  }
  if (out.layers.empty()) {
    throw InputError(directory.string() + ": contains no files layer_<id>.pt");
  }
  CheckLayersAgree(out);
  return out;
}

}  // namespace oscar
