// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The main loop: runs layer by layer over all calibration tokens and reads weights once. Observers
// get queries, keys and values. Trap: an AttentionView is only valid during the call, although its
// tensors may be kept. On a GPU its computation may still be running, so an observer that reads
// values on the host stalls the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "capture/files/block_reader.h"  // ReadMode
#include "capture/model/spec/model_spec.h"
#include "capture/ranks/rank_group.h"

namespace oscar {

// One sequence in one layer. Tensors are contiguous, on the compute device and in the compute
// dtype. An observer may keep these tensors; their storage is not reused.
struct AttentionView {
  const LayerSpec& layer;
  size_t layer_index;   // index into ModelSpec::layers, which excludes layers without a cache
  int64_t sequence;     // index into the sequences given to Run
  int64_t first_token;  // first token of the sequence, counted over all sequences
  const at::Tensor& q;  // [T, num_q_heads, head_dim], after QK-norm and rope
  const at::Tensor& k;  // [T, num_kv_heads, head_dim], after QK-norm and rope
  const at::Tensor& v;  // [T, num_kv_heads, v_head_dim], as stored in the cache
  const at::Tensor& attn_out;  // [T, num_q_heads, v_head_dim], before an output gate and o_proj
  size_t stream = 0;           // index of the hidden states given to Run
  at::Tensor sinks = {};       // [num_q_heads], if the layer has them
  // For latent attention, the content of the cache, from which k and v above are expanded. In
  // latent space (LoopOptions), k and v above are c_kv, q is projected to latent space, and
  // attn_out is the output before W_UV. Logits are then scale * (q . c_kv + q_pe . k_pe).
  at::Tensor c_kv = {};  // [T, rank]
  at::Tensor k_pe = {};  // [T, rope_dim], after rope
  at::Tensor q_pe = {};  // [T, num_q_heads, rope_dim], in latent space
  at::Tensor kv_b = {};  // weights that expand c_kv, [num_q_heads, nope_dim + v_head_dim, rank]
};

class LayerObserver {
 public:
  virtual ~LayerObserver() = default;
  virtual void OnLayerBegin(const LayerSpec& /*layer*/) {}
  // Whether this observer computes the attention of a stream itself and fills view.attn_out.
  virtual bool Attend(const AttentionView& /*view*/) { return false; }
  virtual void OnAttention(const AttentionView& view) = 0;  // once per sequence, in order
  // Called for a layer that reads the keys and values of another layer, which was observed before.
  // q and attn_out are those of the reading layer; k, v and layer_index are those of the other
  // layer.
  virtual void OnSharedAttention(const AttentionView& /*view*/) {}
  // Called with the output of linear attention (no cache) for one sequence: [T, hidden_size].
  virtual void OnLinearAttention(const LayerSpec& /*layer*/, const at::Tensor& /*out*/) {}
  // Called for each layer with experts, with or without a cache. `tokens`: for each expert, how
  // many tokens of the first stream chose it.
  virtual void OnExperts(const LayerSpec& /*layer*/, const std::vector<int64_t>& /*tokens*/) {}
  virtual void OnLayerEnd(const LayerSpec& /*layer*/) {}
  // Called after the last layer with the number of weight bytes this process read, as stored.
  virtual void OnWeightsRead(uint64_t /*bytes*/) {}
  // Called when the loop has waited on the host, with the reason and the time.
  virtual void OnWait(std::string_view /*what*/, double /*seconds*/) {}
};

struct LoopOptions {
  int64_t token_chunk =
      2048;  // tokens per step in norms, projections and MLP; short sequences share a step
  int64_t query_chunk = 512;  // queries per attention call with an explicit mask
  int64_t whole_attention =
      4096;  // most tokens in a sequence that is processed by one causal attention call
  bool need_final_hidden =
      true;  // false: the last layer stops after attention; its o_proj and MLP are not read
  // Used only if need_final_hidden is false. Whether layers after the last layer with a cache still
  // run if they read the keys and values of earlier layers. OnSharedAttention then sees all such
  // layers.
  bool shared_queries = false;
  // The type to which queries, keys and values are rounded before attention, as a cache of that
  // type would round them; absent: no rounding.
  std::optional<at::ScalarType> cache_dtype = std::nullopt;
  ReadMode read = ReadMode::kAuto;  // how weights reach a GPU
  bool prefetch = true;  // false: a layer is read when the previous one is done, so only one is in
                         // Whether latent attention runs in latent space, where observers then see
                         // it. Otherwise it runs, and observers see it, with expanded heads.
  bool in_latent_space = false;
  // Used with in_latent_space: observers see expanded heads, although attention runs in latent
  // space, with exactly the same bits as without this option. Observers may then not compute
  // attention themselves.
  bool show_expanded_heads = false;
  // The size in bytes of a run of experts in the compute dtype; a run has at least one expert. Two
  // runs are in memory at a time.
  int64_t expert_bytes = int64_t{1} << 31;
  // The token ids of the sequences given to Run; must outlive the loop. Models whose layers use
  // token ids need them (ModelSpec::per_layer_inputs); ModelSource sets them.
  const std::vector<std::vector<int32_t>>* token_ids = nullptr;
  // Several ranks run different sequences through the same layers at the same time and share
  // experts. There is only one stream then. The group must outlive the loop.
  RankGroup* ranks = &OneRank();
  // Set if other processes, as ranks or separately, run other sequences of the same run: the number
  // of tokens before these sequences, and of all tokens of the run (StretchOf).
  int64_t tokens_before = 0, tokens_of_all = 0;
};

class LayerLoop {
 public:
  // Keeps references to the checkpoint and the spec; call CheckTensors first.
  LayerLoop(const Checkpoint& checkpoint, const ModelSpec& spec, at::Device device,
            at::ScalarType dtype, const LoopOptions& options = {});

  // Returns the embedding rows of all sequences, concatenated; reads only rows in use. Throws
  // InputError for an id outside the vocabulary, an empty sequence, or one longer than
  // max_positions. `first`: position of each sequence's first token; empty: all 0.
  // -> [T_total, hidden_size]
  at::Tensor Embed(const std::vector<std::vector<int32_t>>& sequences,
                   std::span<const int64_t> first = {}) const;

  // Runs layers first_layer, first_layer + 1, ..., each with the uncached layers after it
  // (StepLayers). Attention never crosses sequence boundaries; positions restart at 0.
  //
  // A stream is one copy of the hidden states [tokens, hidden_size]; each layer updates it in
  // place. Streams share their tokens and the weights, which are read once. They differ in how they
  // attend (LayerObserver::Attend).
  //
  // Each span of sequences (MakeSpans) runs through all streams, in order, before the next span.
  // The first stream holds all sequences. The others may lack the same leading sequences, and all
  // of them except the longest may end early, after a whole sequence. A stream without rows is
  // skipped until after_layer gives it hidden states.
  //
  // `after_layer` is called after each layer's OnLayerEnd, when the layer has been applied to every
  // stream (but see need_final_hidden). If it returns false, the loop stops.
  void Run(std::span<at::Tensor> streams, const std::vector<int64_t>& sequence_lengths,
           size_t first_layer, LayerObserver& observer,
           const std::function<bool(size_t layer_index)>& after_layer) const;
  // Runs one stream.
  void Run(at::Tensor& hidden, const std::vector<int64_t>& sequence_lengths, size_t first_layer,
           LayerObserver& observer,
           const std::function<bool(size_t layer_index)>& after_layer) const;

  // Applies the final norm and head to rows of the final hidden states. Reads the head in every
  // call; OutputHead keeps it.
  // [n, hidden_size] -> [n, vocab_size]
  at::Tensor Logits(const at::Tensor& hidden) const;

  const ModelSpec& spec() const { return spec_; }
  // The layers with a cache as observers see them: those of spec(), or the same in latent space.
  const std::vector<LayerSpec>& seen_layers() const {
    return seen_layers_.empty() ? spec_.layers : seen_layers_;
  }
  at::Device device() const { return device_; }
  at::ScalarType dtype() const { return dtype_; }
  const LoopOptions& options() const { return options_; }

  const Checkpoint& checkpoint() const { return checkpoint_; }

 private:
  const Checkpoint& checkpoint_;
  const ModelSpec& spec_;
  at::Device device_;
  at::ScalarType dtype_;
  LoopOptions options_;
  std::vector<LayerSpec> seen_layers_;  // empty: as in spec_
};

}  // namespace oscar
