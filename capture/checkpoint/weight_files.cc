// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/weight_files.h"

#include <fmt/format.h>

#include <set>
#include <system_error>

#include "capture/files/mapped_file.h"
#include "capture/files/quote.h"
#include "capture/files/strict_json.h"
#include "linalg/error.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

// Also true for a dangling link: something was meant to be here.
bool IsNamed(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

}  // namespace

WeightFiles ParseWeightIndex(std::string_view text, std::string_view what) {
  const Json json = ParseStrictJson(text, what);
  const Json& weight_map = JsonMember(json, "weight_map", what);
  if (!weight_map.is_object() || weight_map.empty()) {
    throw InputError(fmt::format("{}: \"weight_map\" must map tensor names to files, found {}{}",
                                 what, weight_map.empty() ? "an empty " : "",
                                 weight_map.type_name()));
  }
  WeightFiles weights;
  std::set<std::string> files;
  for (const auto& [tensor, file] : weight_map.items()) {
    if (!file.is_string()) {
      throw InputError(fmt::format("{}: tensor {}: file name must be a string, found {}", what,
                                   Quoted(tensor), file.type_name()));
    }
    const std::string name = file.get<std::string>();
    if (!IsBareFileName(name) || !name.ends_with(".safetensors")) {
      throw InputError(
          fmt::format("{}: tensor {}: {} is not the name of a .safetensors file in the "
                      "same directory",
                      what, Quoted(tensor), Quoted(name)));
    }
    weights.weight_map.emplace(tensor, name);
    files.insert(name);
  }
  weights.files.assign(files.begin(), files.end());
  return weights;
}

bool HasWeightFiles(const std::filesystem::path& directory) {
  return exists(directory / kSingleWeightFile) || exists(directory / kWeightIndexFile);
}

bool IsBareFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

void RequireRegularFile(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_regular_file(fs::status(path, ignored))) return;
  std::string_view problem = "is missing";
  if (fs::is_symlink(fs::symlink_status(path, ignored))) {
    problem = "is a link to a file that is not there";
  } else if (IsNamed(path)) {
    problem = "is not a regular file";
  }
  throw InputError(fmt::format("{} {}", path.string(), problem));
}

WeightFiles FindWeightFiles(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) {
    throw InputError(fmt::format("{} is not a directory", directory.string()));
  }
  if (IsNamed(directory / kSingleWeightFile)) {
    RequireRegularFile(directory / kSingleWeightFile);
    return {{kSingleWeightFile}, {}};
  }
  if (IsNamed(directory / kWeightIndexFile)) {
    RequireRegularFile(directory / kWeightIndexFile);
    const MappedFile index = MappedFile::Open(directory / kWeightIndexFile);
    const auto bytes = index.bytes();
    WeightFiles weights = ParseWeightIndex(
        {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, index.path().string());
    for (const std::string& file : weights.files) RequireRegularFile(directory / file);
    return weights;
  }
  throw InputError(fmt::format("{}: no weights: expected {} or {}{}", directory.string(),
                               kSingleWeightFile, kWeightIndexFile,
                               IsNamed(directory / "pytorch_model.bin") ||
                                       IsNamed(directory / "pytorch_model.bin.index.json")
                                   ? "; pytorch_model.bin is a pickle and is not read, convert it "
                                     "to safetensors first"
                                   : ""));
}

}  // namespace oscar
