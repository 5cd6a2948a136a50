// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Generates tokens with a model: one token per step for each of several sequences, over a cache of
// their keys and values (of latents for latent attention, of states for linear attention). Layers
// are computed as in LayerLoop, with the same order of operations. A step has few tokens but needs
// all weights. So all layers stay in memory, or are read again for every step if they do not fit.
// If the position embedding of earlier tokens changes (decode_positions.h), the cache becomes
// invalid, and the sequences are run again.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "capture/model/generate/decode_cache.h"
#include "capture/model/generate/decode_positions.h"
#include "capture/model/run/embedding.h"
#include "capture/model/run/layer_loop.h"
#include "capture/model/run/layer_weights.h"
#include "capture/model/run/output_head.h"
#include "capture/model/run/recorded_work.h"

namespace oscar {

class DecodeLoop {
 public:
  // Keeps references to the checkpoint and the spec; call CheckTensors first. `resident`: reads all
  // weights now and keeps them; otherwise every step reads them as `options` says.
  DecodeLoop(const Checkpoint& checkpoint, const ModelSpec& spec, at::Device device,
             at::ScalarType dtype, bool resident, const LoopOptions& options = {});

  // Replaces all sequences. Each new one has at least one token and room for `capacity` tokens.
  // -> logits after the last token of each sequence, [sequences, vocab_size]
  at::Tensor Begin(std::vector<std::vector<int32_t>> sequences, int64_t capacity);
  // Adds a token to each sequence.  // -> logits as from Begin
  at::Tensor Append(std::span<const int32_t> ids);
  // Drops every sequence except `kept` (indices in ascending order).
  void Keep(const std::vector<size_t>& kept);

  const std::vector<std::vector<int32_t>>& sequences() const { return sequences_; }

  // Bytes of all weights in a type, without the embedding table.
  static uint64_t WeightBytes(const ModelSpec& spec, at::ScalarType dtype);
  // Bytes of the cache of one sequence.
  static uint64_t CacheBytes(const ModelSpec& spec, int64_t capacity, at::ScalarType dtype);

 private:
  struct ResidentLayer {
    LayerWeights weights;
    std::vector<ExpertWeights> experts;
  };
  // New tokens on their way through the layers.
  struct Rows {
    std::vector<int64_t> first;  // position of the first new token of each sequence
    bool whole;                  // all of them begin at 0
    at::Tensor hidden;           // [new tokens, hidden_size]
  };

  // The keys in the cache that a step's attention reads. The range begins and ends at multiples of
  // kKeysAtOnce (or at the capacity), so most steps have the same range as the previous one.
  struct KeyRange {
    int64_t first, count;
  };

  at::Tensor Run(std::vector<int64_t> first);
  void RunStep(Rows& rows);
  void RunLayers(Rows& rows, const std::optional<PerLayerInputs>& inputs);
  void RunMixer(const LayerSpec& layer, const LayerWeights& weights, const at::Tensor& inputs,
                Rows& rows);
  void RunAttention(const LayerSpec& layer, const LayerWeights& weights, const at::Tensor& inputs,
                    Rows& rows);
  void RunDeltaNet(const LayerSpec& layer, const LayerWeights& weights, Rows& rows);
  at::Tensor Attend(const LayerSpec& layer, const LayerWeights& weights, const Rows& rows,
                    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);
  at::Tensor AttendInCache(const LayerSpec& layer, const LayerWeights& weights,
                           const at::Tensor& q) const;
  KeyRange KeysOf(const AttentionSpec& attention) const;
  bool StepsAreAlike() const;
  void LoadLayers();

  const Checkpoint& checkpoint_;
  const ModelSpec& spec_;
  WeightTarget target_;
  LoopOptions options_;
  LayerLoop loop_;  // used only for embedding
  OutputHead head_;
  std::vector<const LayerSpec*> layers_;
  std::vector<ResidentLayer> resident_;  // for layers_; empty: not resident
  std::optional<PerLayerWeights> per_layer_;

  std::vector<std::vector<int32_t>> sequences_;
  int64_t capacity_ = 0;
  std::optional<DecodePositions> positions_;
  std::map<int, DecodeCache> caches_;  // keyed by layer_id
  RecordedWork step_;                  // one token per sequence, through all layers
  at::Tensor step_hidden_;             // rows of the step
};

}  // namespace oscar
