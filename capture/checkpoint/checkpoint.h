// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The weights of a model directory (model.safetensors, or the shards in
// model.safetensors.index.json) or of a GGUF. A GGUF's weights have their names in transformers
// (gguf/gguf_model.h); its stored tensors can also be read by their own names. Opening reads no
// weights, but it reads how quantized weights are stored (quantization_config.h). Throws InputError
// for a shard outside the directory, a missing shard, or a tensor on which index and shards
// disagree.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/gguf/gguf_weight.h"
#include "capture/checkpoint/quantization_config.h"
#include "capture/checkpoint/safetensors.h"
#include "capture/files/digest.h"
#include "capture/files/read_turns.h"

namespace oscar {

class Checkpoint {
 public:
  // `model` is the directory or the GGUF file.
  static Checkpoint Open(const std::filesystem::path& model);
  // Opens a directory that needs only a config.json. The result has no tensors, only the weight
  // format that the config declares.
  static Checkpoint WithoutWeights(const std::filesystem::path& directory);

  const std::filesystem::path& directory() const { return directory_; }
  bool has_weights() const { return !shards_.empty(); }
  bool is_gguf() const { return !gguf_.empty(); }
  // For a GGUF, returns how a dense tensor is assembled; nullptr for an unknown name.
  const GgufWeight* gguf_weight(std::string_view name) const;
  bool Contains(std::string_view name) const {
    return index_.contains(name) || gguf_weight(name) != nullptr;
  }
  std::vector<std::string> names() const;  // sorted
  // Throws InputError if tensors are read by other names than those in the files (tensor_names.h).
  // An export then cannot edit a copy of the files by name.
  void RequireOwnNames() const;
  const TensorInfo& info(
      std::string_view name) const;                // throws InputError naming the tensor if absent
  TensorView tensor(std::string_view name) const;  // throws like info; GGUF: only plain tensors
  void Release(std::string_view name) const;       // drops the tensor's resident pages
  uint64_t total_bytes() const;                    // for all tensors
  const QuantizationConfig& quantization() const { return quantization_; }

  // Return the weight files in name order, relative to the directory, and the index of the file
  // that stores a tensor.
  std::vector<std::string> files() const;
  size_t file_index(std::string_view name) const;
  // Returns the position of a file's byte `offset` within all files together, from 0 to 1; every
  // file counts the same. Loading roughly follows this order, so ReadTurns can compare the progress
  // of loading with that of computing digests.
  double Place(size_t file, uint64_t offset) const;

  // Turns shared by all readers that bypass the page cache for these files.
  const std::shared_ptr<ReadTurns>& turns() const { return turns_; }

 private:
  void TakeNames();
  static Checkpoint OpenGguf(const std::filesystem::path& model);
  const TensorFile& shard(std::string_view name) const { return shards_[file_index(name)]; }

  std::filesystem::path directory_;
  QuantizationConfig quantization_;
  std::vector<TensorFile> shards_;
  std::map<std::string, GgufWeight, std::less<>> gguf_;
  std::map<std::string, size_t, std::less<>> index_;  // tensor name to index of its shard
  bool renamed_ = false;
  std::shared_ptr<ReadTurns> turns_ = std::make_shared<ReadTurns>();
};

}  // namespace oscar
