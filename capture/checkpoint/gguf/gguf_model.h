// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A model in GGUF, in one file or in a split set (-00001-of-0000N.gguf), converted to its Hugging
// Face form: a config.json, and weights by their names in transformers.
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
  // `path`: the file, or the first of a split set. Throws InputError naming the file unless it is a
  // complete model of a supported architecture.
  static GgufModel Open(const std::filesystem::path& path);
  // Makes a model from open files: all files of the model, starting with the one that has the
  // metadata.
  static GgufModel Of(std::vector<GgufFile> files);

  const GgufFile& header() const { return files_.front(); }  // has the metadata
  const std::vector<GgufFile>& files() const { return files_; }
  std::string architecture() const;

  // Returns the stored tensor, or nullptr.
  const GgufTensorInfo* Find(std::string_view name) const;
  // Returns the values of a small F32 tensor. Throws InputError for another type.
  std::vector<float> Floats(const GgufTensorInfo& tensor) const;
  [[noreturn]] void Fail(const std::string& problem) const;

  // Returns the content of a config.json for this model.
  Json Config() const;
  // Returns weights by their names in transformers. A stored tensor without a rule keeps its name.
  std::map<std::string, GgufWeight, std::less<>> Weights() const;

  // Moves the files out of this object. Their tensors keep their stored names; plain tensors have
  // their types, and others are bytes.
  std::vector<TensorFile> TakeFiles() &&;

 private:
  std::vector<GgufFile> files_;
  std::map<std::string_view, std::pair<size_t, const GgufTensorInfo*>> tensors_;
};

// Whether the path is a GGUF file, by its name and file type.
bool IsGgufPath(const std::filesystem::path& path);
// Returns the file of the only GGUF model in a directory, or the first file if the model is split;
// empty if there is no model. Throws InputError naming the files if there are several models.
std::filesystem::path FindGgufIn(const std::filesystem::path& directory);

}  // namespace oscar
