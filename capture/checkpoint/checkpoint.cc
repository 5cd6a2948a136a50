// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "capture/checkpoint/gguf/gguf_model.h"
#include "capture/checkpoint/tensor_names.h"
#include "capture/checkpoint/weight_files.h"
#include "capture/files/quote.h"
#include "linalg/base/error.h"

namespace oscar {

Checkpoint Checkpoint::Open(const std::filesystem::path& directory) {
  if (IsGgufPath(directory)) return OpenGguf(directory);
  const WeightFiles weights = FindWeightFiles(directory);
  Checkpoint checkpoint;
  checkpoint.directory_ = directory;
  checkpoint.quantization_ = QuantizationConfig::ReadDirectory(directory);
  for (const std::string& file : weights.files) {
    checkpoint.shards_.push_back(SafetensorsFile::Open(directory / file));
    const size_t shard = checkpoint.shards_.size() - 1;
    for (const auto& [tensor, info] : checkpoint.shards_.back().tensors()) {
      if (!weights.weight_map.empty()) {
        const auto listed = weights.weight_map.find(tensor);
        if (listed == weights.weight_map.end() || listed->second != file) {
          throw InputError(fmt::format(
              "{}: contains tensor {}, which {} {}; the files belong to different versions, so "
              "download the model again",
              (directory / file).string(), Quoted(tensor), kWeightIndexFile,
              listed == weights.weight_map.end() ? "does not list" : "lists in " + listed->second));
        }
      }
      checkpoint.index_.emplace(tensor, shard);
    }
  }
  for (const auto& [tensor, file] : weights.weight_map) {
    if (!checkpoint.Contains(tensor)) {
      throw InputError(fmt::format("{}: tensor {} is listed in {}, which does not contain it",
                                   (directory / kWeightIndexFile).string(), Quoted(tensor), file));
    }
  }
  checkpoint.TakeNames();
  return checkpoint;
}

// Renames tensors from their stored names to the names by which they are read (tensor_names.h).
void Checkpoint::TakeNames() {
  const std::vector<std::string> stored = names(),
                                 read = NamesToReadBy(stored, directory_.string());
  renamed_ = stored != read;
  if (!renamed_) return;
  std::vector<std::map<std::string, std::string>> of_shards(shards_.size());
  for (size_t i = 0; i < stored.size(); ++i)
    if (stored[i] != read[i]) of_shards[index_.at(stored[i])].emplace(stored[i], read[i]);
  index_.clear();
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    for (const auto& [from, to] : of_shards[shard]) shards_[shard].Rename(from, to);
    for (const auto& [name, info] : shards_[shard].tensors()) index_.emplace(name, shard);
  }
}

void Checkpoint::RequireOwnNames() const {
  if (!renamed_) return;
  throw InputError(
      fmt::format("{}: its tensors do not have the names that the model's class uses, so the "
                  "export cannot edit a copy of it; save the model again with transformers "
                  "(from_pretrained, then save_pretrained)",
                  directory_.string()));
}

Checkpoint Checkpoint::OpenGguf(const std::filesystem::path& model) {
  GgufModel gguf = GgufModel::Open(model);
  Checkpoint checkpoint;
  checkpoint.directory_ = model.parent_path();
  checkpoint.gguf_ = gguf.Weights();
  for (TensorFile& file : std::move(gguf).TakeFiles()) {
    for (const auto& [tensor, info] : file.tensors())
      checkpoint.index_.emplace(tensor, checkpoint.shards_.size());
    checkpoint.shards_.push_back(std::move(file));
  }
  return checkpoint;
}

const GgufWeight* Checkpoint::gguf_weight(std::string_view name) const {
  const auto found = gguf_.find(name);
  return found == gguf_.end() ? nullptr : &found->second;
}

Checkpoint Checkpoint::WithoutWeights(const std::filesystem::path& directory) {
  Checkpoint checkpoint;
  checkpoint.directory_ = directory;
  checkpoint.quantization_ = QuantizationConfig::ReadDirectory(directory);
  return checkpoint;
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  for (const auto& [name, weight] : gguf_) names.push_back(name);
  if (!is_gguf())
    for (const auto& [name, shard] : index_) names.push_back(name);
  return names;
}

size_t Checkpoint::file_index(std::string_view name) const {
  const auto it = index_.find(name);
  if (it == index_.end()) {
    throw InputError(
        fmt::format("{}: the checkpoint has no tensor {}", directory_.string(), Quoted(name)));
  }
  return it->second;
}

const TensorInfo& Checkpoint::info(std::string_view name) const {
  if (const GgufWeight* weight = gguf_weight(name)) return weight->info;
  return shard(name).tensors().find(name)->second;
}

TensorView Checkpoint::tensor(std::string_view name) const {
  const GgufWeight* const weight = gguf_weight(name);
  if (weight == nullptr || !weight->plain()) return shard(name).tensor(name);
  const GgufWeight::Part& part = weight->parts.front();
  const std::span<const std::byte> stored = shard(part.tensor).tensor(part.tensor).data;
  return {weight->info.dtype, weight->info.shape, stored.subspan(part.begin, part.size)};
}

void Checkpoint::Release(std::string_view name) const {
  const GgufWeight* const weight = gguf_weight(name);
  const std::string_view stored = weight == nullptr ? name : weight->parts.front().tensor;
  shard(stored).Release(stored);
}

uint64_t Checkpoint::total_bytes() const {
  uint64_t total = 0;
  for (const TensorFile& shard : shards_) {
    for (const auto& [name, info] : shard.tensors()) total += info.size;
  }
  return total;
}

double Checkpoint::Place(size_t file, uint64_t offset) const {
  const auto size = static_cast<double>(std::max<uint64_t>(1, shards_.at(file).size()));
  const double within = std::min(1.0, static_cast<double>(offset) / size);
  return (static_cast<double>(file) + within) / static_cast<double>(shards_.size());
}

std::vector<std::string> Checkpoint::files() const {
  std::vector<std::string> files;
  for (const TensorFile& shard : shards_) files.push_back(shard.path().filename().string());
  return files;
}

}  // namespace oscar
