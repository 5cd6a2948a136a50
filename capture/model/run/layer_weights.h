// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The weights of one layer on the compute device, loaded in advance. While a layer or a run of its
// experts is computed, a separate thread reads and uploads the next part. Trap: at most two parts
// are in memory, but only if the caller drops each part before it requests the next.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "capture/model/experts/experts.h"
#include "capture/model/run/gated_delta_net.h"
#include "capture/model/run/latent_attention.h"
#include "capture/model/run/linear_weights.h"
#include "capture/model/run/weight_loader.h"
#include "capture/model/spec/model_spec.h"
#include "capture/ranks/rank_group.h"

namespace oscar {

struct NormWeights {
  at::Tensor weight, bias;           // [size], weight sometimes [heads, size]; undefined if the
                                     // norm has none
  std::vector<at::Tensor> of_heads;  // [size] each, in place of weight
};

struct XieluWeights {
  at::Tensor alpha_p, alpha_n;  // [1]
  at::Tensor beta, eps;         // one value; or undefined
};

// All tensors are on the compute device in the compute dtype. A tensor is undefined if the layer
// does not have it or if it was not requested.
struct LayerWeights {
  NormWeights attention_norm, post_attention_norm, mlp_norm, post_mlp_norm;  // [hidden_size]
  LinearWeights q, k, v, o;
  NormWeights q_norm, k_norm, v_norm;  // [head_dim], or [heads head_dim]
  at::Tensor sinks;                    // [num_q_heads]
  LinearWeights attention_gate;
  NormWeights attention_out_norm;  // [num_q_heads v_head_dim]
  LinearWeights gate, up, down;
  NormWeights mlp_inner_norm;  // [intermediate_size]
  XieluWeights xielu;
  LinearWeights per_layer_gate, per_layer_projection;
  NormWeights per_layer_norm;  // [hidden_size]
  at::Tensor scalar;           // [1]
  RouterWeights router;        // the experts themselves follow the layer
  NormWeights mlp_out_norm, experts_in_norm, experts_out_norm;  // [hidden_size]
  GatedDeltaNetWeights delta_net;
  LatentWeights latent;

  // Joins rows of q, k and v that are stored in pieces (LinearSpec), after they are read.
  void JoinPieces();
  // Frees the weights that are no longer needed once attention or linear attention is done.
  void DropMixer();

  // All tensors that were loaded, so that several ranks can check that theirs are equal.
  std::vector<at::Tensor> loaded;

  bool attention_only = false;  // nothing after attention was requested
};

// `attention_only`: loads only what q, k, v need.
LayerWeights LoadLayer(WeightLoader& loader, const LayerSpec& layer, bool attention_only = false);

NormWeights LoadNorm(WeightLoader& loader, const NormSpec& norm);

// Returns the slice of a run of experts that rank `rank` of `ranks` ranks has. Slices are in the
// order of ranks; some may be empty.
ExpertRun SliceOfRun(const ExpertRun& run, int rank, int ranks);

struct WeightStreamOptions {
  size_t first_layer = 0;  // layer index; preceding uncached layers run first
  bool last_attention_only = false;
  bool shared_queries = false;  // as in LoopOptions
  bool prefetch = true;         // false: one layer in memory instead of two
  ReadMode read = ReadMode::kAuto;
  int64_t expert_bytes = int64_t{1} << 31;  // bytes of a run of experts, in the compute dtype
  // Experts are distributed among ranks: with n ranks a run is n times as large, and each rank
  // reads its slice. All other weights of a layer are read once per machine: each rank reads a part
  // of them, and the ranks share their parts when the layer is handed out.
  RankGroup* group = &OneRank();
};

// Returns the layers that run from layer index first_layer on, including those without a cache.
// With `last_attention_only`, they end at the last layer with a cache or, with `shared_queries`, at
// the last layer that has or reads a cache.
std::vector<const LayerSpec*> LayersToRun(const ModelSpec& spec,
                                          const WeightStreamOptions& options);

// Hands out the layers of LayersToRun in order; a layer with experts is followed by its runs of
// experts. Not thread-safe; the checkpoint and spec must outlive it.
class WeightStream {
 public:
  WeightStream(const Checkpoint& checkpoint, const ModelSpec& spec, const WeightTarget& target,
               const WeightStreamOptions& options);
  ~WeightStream();  // waits for a load in progress

  // Returns the next layer, waiting for it if necessary, and starts to load the part after it. The
  // caller must have launched the last kernel that uses the previous part and have dropped that
  // part (of a layer with experts, only what DropMixer frees). Rethrows errors from loading.
  LayerWeights Next();
  // Returns the next run of experts (or this rank's slice of it) for the last layer handed out.
  ExpertWeights NextExperts();
  std::vector<ExpertRun> Runs(const LayerSpec& layer) const;
  // Bytes that this process read from disk, after the last part has been handed out.
  uint64_t bytes_read() const { return loader_.bytes_read(); }

 private:
  struct Part {
    const LayerSpec* layer;
    bool attention_only;
    std::optional<ExpertRun> run;  // run of a layer's experts; absent: the layer without experts
  };
  struct Loaded {
    LayerWeights layer;
    ExpertWeights experts;
  };
  void Start();  // starts to load next_
  Loaded Take();

  WeightTarget target_;
  WeightStreamOptions options_;
  std::vector<int> readers_;  // ranks with which this rank shares reading
  std::vector<Part> parts_;
  size_t next_ = 0;  // index into parts_
  // The loading thread uses loader_ and loaded_ while loading_ is valid.
  WeightLoader loader_;
  std::vector<at::Tensor> loaded_;
  std::future<Loaded> loading_;
};

}  // namespace oscar
