// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A model in GGUF, in one file or in the files of a split set (-00001-of-0000N.gguf), and what it
// is as a Hugging Face model: a config.json, and weights by the names that transformers gives them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/gguf/gguf_weight.h"
#include "capture/checkpoint/gguf_file.h"
#include "capture/files/strict_json.h"

namespace oscar {

class GgufModel {
 public:
  // `path`: the file, or the first of a split set. Throws InputError naming the file for anything
  // but a whole model of a supported architecture.
  static GgufModel Open(const std::filesystem::path& path);
  // Of files that are open: all of the model's, the one with the metadata first.
  static GgufModel Of(std::vector<GgufFile> files);

  const GgufFile& header() const { return files_.front(); }  // has the metadata
  const std::vector<GgufFile>& files() const { return files_; }
  std::string architecture() const;

  // The stored tensor, or nullptr.
  const GgufTensorInfo* Find(std::string_view name) const;
  // Values of a small tensor of type F32. Throws InputError for another type.
  std::vector<float> Floats(const GgufTensorInfo& tensor) const;
  [[noreturn]] void Fail(const std::string& problem) const;

  // What a config.json of this model says.
  Json Config() const;
  // By the name that transformers gives each. A stored tensor that no rule knows keeps its name.
  std::map<std::string, GgufWeight, std::less<>> Weights() const;

  // The files with their stored tensors by their own names: plain ones with their types, others as
  // bytes. Leaves nothing here.
  std::vector<TensorFile> TakeFiles() &&;

 private:
  std::vector<GgufFile> files_;
  std::map<std::string_view, std::pair<size_t, const GgufTensorInfo*>> tensors_;
};

// Whether the path is that of a GGUF file, by its name and kind.
bool IsGgufPath(const std::filesystem::path& path);
// The one model that a directory's GGUF files are: its file, or the first of its split set. Empty
// without any. Throws InputError naming the files where they are several models.
std::filesystem::path FindGgufIn(const std::filesystem::path& directory);

}  // namespace oscar
