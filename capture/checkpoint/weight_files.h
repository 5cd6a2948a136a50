// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Which files of a model directory hold its weights. As transformers decides: model.safetensors if
// it is there, else the shards of model.safetensors.index.json.
// The index is hostile. A shard is a bare file name; the file behind it may be a symbolic
// link, because that is how the Hugging Face cache stores it.
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
// anything but files of this directory, or if a file is missing (a dangling link is missing).
WeightFiles FindWeightFiles(const std::filesystem::path& directory);

// The same of the index alone, as text: whether the files are there is not asked. `what` names it.
WeightFiles ParseWeightIndex(std::string_view text, std::string_view what);

// What a directory without weights or configuration holds instead, and the way from it to a model;
// "" where nothing is known of it.
std::string WhatElseIsIn(const std::filesystem::path& directory);

// Of a directory whose weights `tensors` were read from: the way out where model.safetensors went
// before an index that lists other tensors and whose files are all there; else "".
std::string WhyStray(const std::filesystem::path& directory, const std::set<std::string>& tensors);

// Whether there is either of the two files, or the path is that of a GGUF.
bool HasWeightFiles(const std::filesystem::path& directory);

// True for a name that stays in its directory: not empty, no separator, no NUL, not "." or "..".
bool IsBareFileName(const std::string& name);

// Throws InputError naming `path` unless it leads to a regular file.
void RequireRegularFile(const std::filesystem::path& path);

}  // namespace oscar
