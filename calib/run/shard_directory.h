// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A shard: the results of one of several processes that have no network between them. Each process
// runs some of the documents of a calibration, and another process joins all shards
// (layer_parts.h).
//
// clang-format off
//     <shard>/layer_00000.safetensors ...   TensorsOf every layer by index; w_uv of latent attention
//     <shard>/hidden_00004.safetensors      for a model of 4 layers: hidden states from which the text's loss is computed
//     <shard>/shard.json                    describes the run, the documents and these files (shard_document.h)
// clang-format on
// While a shard is being made, it is a job (JobDirectory) with the same files.
// While it is being made, it is a job (JobDirectory) with the same files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calib/job/job_directory.h"
#include "calib/job/shard_document.h"
#include "calib/observe/statistics_observer.h"
#include "calib/run/calibrate.h"
#include "calib/run/tensor_file.h"

namespace oscar {

// Returns the tensors in a layer's file. For an empty `part`, they give names, types and shapes.
std::vector<NamedTensor> TensorsOfShard(const LayerOnDevice& part);

// Returns this shard's hidden states that enter the last layer: [tokens, hidden_size], in order,
// for the documents on which the text's loss is measured. Undefined if there are none.
at::Tensor TextHiddenOf(const CalibrationInput& input);

// Publishes a finished job as a shard at `path`. `run`: Fingerprint; `weights`: from DescribeModel.
void PublishShard(JobDirectory& job, const ShardPlace& place, const RankShare& share,
                  const Json& run, const Json& weights, const Json& timings,
                  const std::filesystem::path& path);

// Returns whether a directory is the shard `place` of the calibration `run`; false if `path` does
// not exist. Throws InputError if it is anything else.
bool IsShardOf(const std::filesystem::path& path, const ShardPlace& place, const Json& run);

// All shards of a calibration.
class ShardSet {
 public:
  static bool LooksLikeOne(const std::filesystem::path& path);
  // Opens shards in any order. Throws InputError naming a shard that is missing, occurs twice, has
  // another number of shards, or lacks a file. Does not compare the shards with a run.
  static ShardSet Open(const std::vector<std::filesystem::path>& directories);

  const std::vector<RankShare>& shares() const { return shares_; }
  int64_t token_chunk() const { return shards_.front().document.token_chunk(); }
  int64_t query_chunk() const { return shards_.front().document.query_chunk(); }
  Json timings() const;  // one entry per shard

  // Throws InputError naming a shard if its model, data, options, machine or program differ.
  void CheckRun(const Json& run, size_t num_layers, const std::vector<int64_t>& lengths) const;
  // Throws InputError naming a shard that has read other weights; `weights`: from DescribeModel.
  void CheckWeights(const Json& weights) const;

  // Reads a layer of all shards to the device of `input`. Throws InputError naming a damaged file.
  LayerOnDevice ReadLayer(const CalibrationInput& input, const HeldOutSplit& split,
                          size_t layer_index) const;
  uint64_t LayerBytes(size_t layer_index) const;
  // Returns the rows of TextSampleOf; nothing if the shards have no such rows.
  std::vector<TextRows> ReadTextRows(const CalibrationInput& input) const;

 private:
  struct Shard {
    std::filesystem::path path;
    ShardDocument document;
  };

  std::vector<Shard> shards_;  // ascending by number
  std::vector<RankShare> shares_;
};

// A model that shards have already run. Run() observes nothing, and LayerTransport gathers what the
// shards observed.
class ShardSource : public AttentionSource {
 public:
  ShardSource(std::shared_ptr<AttentionSource> model, std::shared_ptr<const ShardSet> shards)
      : model_(std::move(model)), shards_(std::move(shards)) {}

  const ShardSet& shards() const { return *shards_; }
  ModelSource* model() override { return model_->model(); }
  std::string_view what() const override { return "shards"; }
  uint64_t BytesRead(size_t layer_index) const override { return shards_->LayerBytes(layer_index); }
  const std::vector<LayerSpec>& layers() const override { return model_->layers(); }
  const std::vector<int64_t>& sequence_lengths() const override {
    return model_->sequence_lengths();
  }
  void Run(size_t first_layer, LayerObserver& observer,
           const std::function<bool(size_t)>& after_layer) override;

 private:
  std::shared_ptr<AttentionSource> model_;
  std::shared_ptr<const ShardSet> shards_;
};

}  // namespace oscar
