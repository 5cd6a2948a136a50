// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/weight_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "capture/checkpoint/gguf/gguf_model.h"
#include "capture/files/mapped_file.h"
#include "capture/files/quote.h"
#include "capture/files/strict_json.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

// Also true for a dangling link, because something was meant to be here.
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
  return IsGgufPath(directory) || exists(directory / kSingleWeightFile) ||
         exists(directory / kWeightIndexFile);
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
    problem = "is a link to a file that does not exist";
  } else if (IsNamed(path)) {
    problem = "is not a regular file";
  }
  throw InputError(fmt::format("{} {}", path.string(), problem));
}

namespace {

WeightFiles ReadIndex(const fs::path& directory) {
  RequireRegularFile(directory / kWeightIndexFile);
  const MappedFile index = MappedFile::Open(directory / kWeightIndexFile);
  const auto bytes = index.bytes();
  return ParseWeightIndex({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                          index.path().string());
}

}  // namespace

std::string WhyStray(const fs::path& directory, const std::set<std::string>& tensors) {
  if (!IsNamed(directory / kSingleWeightFile) || !IsNamed(directory / kWeightIndexFile)) return "";
  WeightFiles others;
  try {
    others = ReadIndex(directory);
  } catch (const InputError&) {  // an invalid index gives no advice
    return "";
  }
  const auto there = [&](const std::string& file) { return IsNamed(directory / file); };
  const auto missing = std::ranges::find_if(
      others.weight_map, [&](const auto& entry) { return !tensors.contains(entry.first); });
  if (missing == others.weight_map.end() || !std::ranges::all_of(others.files, there)) return "";
  return fmt::format(
      "{} takes precedence over the {} files of {} but lacks tensor {}, which they have; if it is "
      "a stray file, remove it; if it is the model, remove the index; ",
      kSingleWeightFile, others.files.size(), kWeightIndexFile, Quoted(missing->first));
}

std::string WhatElseIsIn(const fs::path& directory) {
  if (IsNamed(directory / "adapter_config.json")) {
    return "; this is a LoRA adapter, so merge it into its base model (peft: "
           "AutoPeftModelForCausalLM.from_pretrained(...).merge_and_unload().save_pretrained(...)) "
           "and give the result";
  }
  std::vector<std::string> gguf, shards, others, pickles;
  bool consolidated = false;
  std::error_code error;
  for (auto it = fs::directory_iterator(directory, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(".gguf")) gguf.push_back(name);
    if (name.starts_with("pytorch_model") || name.ends_with(".pth")) pickles.push_back(name);
    if (!name.ends_with(".safetensors")) continue;
    if (name.starts_with("consolidated")) {
      consolidated = true;
    } else {
      (name.find("-of-") != name.npos ? shards : others).push_back(name);
    }
  }
  std::ranges::sort(gguf);
  if (!shards.empty()) {
    return fmt::format(
        "; it contains {} shards without the {} that lists their tensors; download that file from "
        "the model's source, or load the model with transformers and save it again",
        shards.size(), kWeightIndexFile);
  }
  if (consolidated) {
    return "; consolidated.safetensors is Mistral's own format with other tensor names; download "
           "the files for transformers (model*.safetensors, config.json, tokenizer.json) of the "
           "same model";
  }
  if (!gguf.empty())
    return fmt::format("; it contains the GGUF file {}; give that file itself", gguf.front());
  if (others.size() == 1) {
    return fmt::format("; it contains {}; if that file has all weights, rename it to {}",
                       others.front(), kSingleWeightFile);
  }
  if (!pickles.empty()) {
    return fmt::format("; {} is a pickle, which is not supported; convert it to safetensors first",
                       pickles.front());
  }
  return "";
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
    WeightFiles weights = ReadIndex(directory);
    for (const std::string& file : weights.files) RequireRegularFile(directory / file);
    return weights;
  }
  throw InputError(fmt::format("{}: contains no weights; expected {} or {}{}", directory.string(),
                               kSingleWeightFile, kWeightIndexFile, WhatElseIsIn(directory)));
}

}  // namespace oscar
