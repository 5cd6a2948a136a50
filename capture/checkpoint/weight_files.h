// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the files of a model directory that hold its weights, like transformers: model.safetensors
// if it exists, otherwise the shards of model.safetensors.index.json. The index is untrusted, so a
// shard must be a bare file name. It may be a symbolic link, because the Hugging Face cache stores
// files like that.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace oscar {

inline constexpr const char* kSingleWeightFile = "model.safetensors";
inline constexpr const char* kWeightIndexFile = "model.safetensors.index.json";

struct WeightFiles {
  std::vector<std::string> files;                 // names in the directory, sorted
  std::map<std::string, std::string> weight_map;  // tensor to file; empty without an index
};

// Throws InputError if there are no safetensors weights, if the index is malformed or names
// anything but files of this directory, or if a file is missing (or a dangling link).
WeightFiles FindWeightFiles(const std::filesystem::path& directory);

// Parses an index given as text, without checking that the files exist. `what` names it.
WeightFiles ParseWeightIndex(std::string_view text, std::string_view what);

// For a directory without weights or configuration, describes its other contents and how to get a
// model from them; "" if unknown.
std::string WhatElseIsIn(const std::filesystem::path& directory);

// `tensors` are those of the directory's model.safetensors, which has priority over an index.
// Returns advice if there is also an index that lists other tensors and whose files all exist,
// since one of the two may be there by mistake; otherwise "".
std::string WhyStray(const std::filesystem::path& directory, const std::set<std::string>& tensors);

// Whether one of these two files exists, or the path is a GGUF.
bool HasWeightFiles(const std::filesystem::path& directory);

// Whether a name stays in its directory: not empty, no separator, no NUL, not "." or "..".
bool IsBareFileName(const std::string& name);

// Throws InputError naming `path` unless it refers to a regular file.
void RequireRegularFile(const std::filesystem::path& path);

}  // namespace oscar
