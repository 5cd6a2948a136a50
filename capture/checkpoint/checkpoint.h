// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The weights of a model directory: model.safetensors, or the shards named by
// model.safetensors.index.json; or those of a GGUF by the names that transformers gives them
// (gguf/gguf_model.h), whose stored tensors can be read by their own names too. Opened without
// reading any weight. A shard outside the directory, a missing shard, a tensor the index and the
// shards disagree on: InputError. How quantized weights are stored is read with it
// (quantization_config.h).
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
  // `model`: the directory, or the GGUF file.
  static Checkpoint Open(const std::filesystem::path& model);
  // Of a directory with a config.json alone: no tensors, but what it says of their format.
  static Checkpoint WithoutWeights(const std::filesystem::path& directory);

  const std::filesystem::path& directory() const { return directory_; }
  bool has_weights() const { return !shards_.empty(); }
  bool is_gguf() const { return !gguf_.empty(); }
  // Of a GGUF: how a dense tensor is put together; nullptr for a name that is none.
  const GgufWeight* gguf_weight(std::string_view name) const;
  bool Contains(std::string_view name) const {
    return index_.contains(name) || gguf_weight(name) != nullptr;
  }
  std::vector<std::string> names() const;  // sorted
  // Whether tensors are read by other names than the files have (tensor_names.h), so that a copy of
  // these files cannot be edited by name. Throws InputError if so.
  void RequireOwnNames() const;
  const TensorInfo& info(
      std::string_view name) const;                // throws InputError naming the tensor if absent
  TensorView tensor(std::string_view name) const;  // the same; of a GGUF only what is stored plain
  void Release(std::string_view name) const;       // drops its resident pages
  uint64_t total_bytes() const;                    // of all tensors
  const QuantizationConfig& quantization() const { return quantization_; }

  // Weight files in name order, relative to the directory; and the one that holds a tensor, in it.
  std::vector<std::string> files() const;
  size_t file_index(std::string_view name) const;
  // How far into all of them, one after another, byte `offset` of one is: 0 to 1. What is loaded,
  // about in this order, is held against what is digested by it (turns).
  double Place(size_t file, uint64_t offset) const;

  // Of everything that reads these files past the page cache.
  const std::shared_ptr<ReadTurns>& turns() const { return turns_; }

 private:
  void TakeNames();
  static Checkpoint OpenGguf(const std::filesystem::path& model);
  const TensorFile& shard(std::string_view name) const { return shards_[file_index(name)]; }

  std::filesystem::path directory_;
  QuantizationConfig quantization_;
  std::vector<TensorFile> shards_;
  std::map<std::string, GgufWeight, std::less<>> gguf_;
  std::map<std::string, size_t, std::less<>> index_;  // tensor name to shard
  bool renamed_ = false;
  std::shared_ptr<ReadTurns> turns_ = std::make_shared<ReadTurns>();
};

}  // namespace oscar
