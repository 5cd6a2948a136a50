// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Provides queries, keys and values layer by layer, from a running model or from a dump on disk.
// Trap: a dump can start at any layer, a model cannot. To start at a later layer, ModelSource must
// be given the hidden states that enter it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "capture/dump/attention_dump.h"
#include "capture/model/run/layer_loop.h"

namespace oscar {

class ModelSource;

class AttentionSource {
 public:
  virtual ~AttentionSource() = default;
  // The model that this attention comes from, even if Run does not run it; null if there is none.
  virtual ModelSource* model() { return nullptr; }
  // Names the input of Run: "weights" or "dump".
  virtual std::string_view what() const = 0;
  virtual uint64_t BytesRead(size_t layer_index) const = 0;  // bytes that Run reads for a layer
  // Layers with their geometry; they only have tensor names if there is a model.
  virtual const std::vector<LayerSpec>& layers() const = 0;
  virtual const std::vector<int64_t>& sequence_lengths() const = 0;  // tokens
  // Index of the first layer whose keys and values Run shows a second time, with the queries of
  // other layers (OnSharedAttention), after all layers with a cache. layers().size() if there is
  // none.
  virtual size_t first_shared_layer() const { return layers().size(); }
  // Like LayerLoop::Run: calls the observer for each layer and, within a layer, for each sequence.
  // If after_layer returns false, the run stops.
  virtual void Run(size_t first_layer, LayerObserver& observer,
                   const std::function<bool(size_t)>& after_layer) = 0;
};

class ModelSource : public AttentionSource {
 public:
  // Keeps references to both; call CheckTensors first. Does not read anything yet.
  ModelSource(const Checkpoint& checkpoint, const ModelSpec& spec,
              std::vector<std::vector<int32_t>> sequences, at::Device device, at::ScalarType dtype,
              const LoopOptions& options = {});

  ModelSource* model() override { return this; }
  std::string_view what() const override { return "weights"; }
  uint64_t BytesRead(size_t layer_index) const override;
  const std::vector<LayerSpec>& layers() const override { return loop_.seen_layers(); }
  const std::vector<int64_t>& sequence_lengths() const override { return lengths_; }
  size_t first_shared_layer() const override;
  // If first_layer is 0, embeds the tokens first; otherwise Restore() must have been called.
  void Run(size_t first_layer, LayerObserver& observer,
           const std::function<bool(size_t)>& after_layer) override;

  const LayerLoop& loop() const { return loop_; }
  const std::vector<std::vector<int32_t>>& sequences() const { return sequences_; }
  int64_t num_tokens() const;

  // Hidden states [num_tokens, hidden_size] that enter the next layer. Valid during after_layer and
  // after Run; undefined before Run.
  const at::Tensor& hidden() const { return hidden_; }
  // Sets the hidden states that enter the first layer of the next Run. They may be on any device,
  // in the compute dtype.
  void Restore(const at::Tensor& hidden);

 private:
  std::vector<std::vector<int32_t>> sequences_;
  std::vector<int64_t> lengths_;
  LayerLoop loop_;
  at::Tensor hidden_;
};

class DumpSource : public AttentionSource {
 public:
  // `dump` is shared, so that a validation can also read its token ids or scores. attn_out is read
  // if the dump has it, and otherwise computed with CausalAttention. Latent attention is shown in
  // latent space. A layer that reads another layer's keys and values is shown directly after that
  // layer (OnSharedAttention) and has its geometry, except for the number of query heads.
  // `cache_dtype`: type to which queries, keys and values are rounded, as in LoopOptions; attention
  // output is then computed from the rounded values.
  DumpSource(std::shared_ptr<const AttentionDump> dump, at::Device device, at::ScalarType dtype,
             std::optional<at::ScalarType> cache_dtype = std::nullopt);

  std::string_view what() const override { return "dump"; }
  uint64_t BytesRead(size_t layer_index) const override;
  const std::vector<LayerSpec>& layers() const override { return layers_; }
  const std::vector<int64_t>& sequence_lengths() const override {
    return dump_->sequence_lengths();
  }
  void Run(size_t first_layer, LayerObserver& observer,
           const std::function<bool(size_t)>& after_layer) override;

  const AttentionDump& dump() const { return *dump_; }

 private:
  // Read one sequence's tensor of a layer, one sequence's tensor of a layer that reads this layer's
  // cache, and all weights that expand latents.
  at::Tensor Read(size_t layer_index, DumpTensor tensor, size_t sequence) const;
  at::Tensor ReadOfReader(size_t layer_index, size_t reader, DumpTensor tensor,
                          size_t sequence) const;
  at::Tensor ReadKvB(size_t layer_index) const;
  at::Tensor OnDevice(const at::Tensor& stored) const;
  at::Tensor Rounded(const at::Tensor& x) const;
  // Returns the dumped output, or computes it if the dump has none or values are rounded.
  at::Tensor Output(const LayerSpec& layer, const at::Tensor& q, const at::Tensor& k,
                    const at::Tensor& v, const std::function<at::Tensor()>& dumped) const;
  void RunHeads(size_t layer_index, LayerObserver& observer) const;
  void RunLatent(size_t layer_index, LayerObserver& observer) const;
  void RunReader(size_t layer_index, size_t reader, LayerObserver& observer) const;

  std::shared_ptr<const AttentionDump> dump_;
  at::Device device_;
  at::ScalarType dtype_;
  std::optional<at::ScalarType> cache_dtype_;
  std::vector<int64_t> first_tokens_;  // first token of each sequence
  std::vector<LayerSpec> layers_;
};

}  // namespace oscar
