// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The weights of one layer on the compute device, and their arrival in time: while a layer or a run
// of its experts computes, the next part is read and uploaded by a thread of its own. Trap: at most
// two parts are in memory, which holds only if the caller drops one before it asks for the next.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "capture/model/experts.h"
#include "capture/model/gated_delta_net.h"
#include "capture/model/latent_attention.h"
#include "capture/model/linear_weights.h"
#include "capture/model/model_spec.h"
#include "capture/model/weight_loader.h"
#include "capture/ranks/rank_group.h"

namespace oscar {

struct NormWeights {
  at::Tensor weight, bias;           // [size], weight perhaps [heads, size]; undefined where the
                                     // norm has none
  std::vector<at::Tensor> of_heads;  // [size] each, instead of weight
};

struct XieluWeights {
  at::Tensor alpha_p, alpha_n;  // [1]
  at::Tensor beta, eps;         // one value; or undefined
};

// All in the compute dtype on the compute device. Undefined: not part of the layer, or not asked
// for.
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
  RouterWeights router;        // the experts themselves come after the layer
  NormWeights mlp_out_norm, experts_in_norm, experts_out_norm;  // [hidden_size]
  GatedDeltaNetWeights delta_net;
  LatentWeights latent;

  // Copies rows of q, k and v that are stored in pieces (LinearSpec) together, once they are read.
  void JoinPieces();
  // Lets go of what is behind the layer once its tokens are mixed: attention or linear attention.
  void DropMixer();

  // Among ranks, all that was loaded of them, for a comparison.
  std::vector<at::Tensor> loaded;

  bool attention_only = false;  // nothing behind the attention was asked for
};

// `attention_only`: no more than q, k, v need.
LayerWeights LoadLayer(WeightLoader& loader, const LayerSpec& layer, bool attention_only = false);

NormWeights LoadNorm(WeightLoader& loader, const NormSpec& norm);

// What rank `rank` of `ranks` takes of a run: slices ascend with the ranks, and some may be empty.
ExpertRun SliceOfRun(const ExpertRun& run, int rank, int ranks);

struct WeightStreamOptions {
  size_t first_layer = 0;  // layer index; its step begins with that layer's uncached ones
  bool last_attention_only = false;
  bool shared_queries = false;  // of what ends that run: LoopOptions
  bool prefetch = true;         // false: one layer in memory instead of two
  ReadMode read = ReadMode::kAuto;
  int64_t expert_bytes = int64_t{1} << 31;  // of a run of experts, in the compute dtype
  // Experts are shared out among ranks: of each run, which is so much longer, one reads its slice.
  // The rest of a layer is read once a machine, each rank its part, and shared when it is handed
  // out.
  RankGroup* group = nullptr;

  int rank() const { return group == nullptr ? 0 : group->rank(); }
  int ranks() const { return group == nullptr ? 1 : group->size(); }
};

// What runs from that layer index on, uncached layers included; with `last_attention_only` to the
// last layer with a cache, or, with `shared_queries`, that reads one.
std::vector<const LayerSpec*> LayersToRun(const ModelSpec& spec,
                                          const WeightStreamOptions& options);

// Hands out LayersToRun one after the other, and after a layer with experts those, run after run.
// Not thread-safe; the checkpoint and spec must outlive it.
class WeightStream {
 public:
  WeightStream(const Checkpoint& checkpoint, const ModelSpec& spec, const WeightTarget& target,
               const WeightStreamOptions& options);
  ~WeightStream();  // waits for a load under way

  // The next layer, waiting for it if it is not there yet; starts on the part after it. The part
  // handed out before must have been dropped (of a layer with experts: its mixer) and its last
  // kernel been launched. Throws what the loading threw.
  LayerWeights Next();
  // The next run of experts, or this rank's slice of it, of the layer handed out last.
  ExpertWeights NextExperts();
  std::vector<ExpertRun> Runs(const LayerSpec& layer) const;
  // From disk, by this process, once the last part has been handed out.
  uint64_t bytes_read() const { return loader_.bytes_read(); }

 private:
  struct Part {
    const LayerSpec* layer;
    bool attention_only;
    std::optional<ExpertRun> run;  // of the layer's experts; nothing: the layer without them
  };
  struct Loaded {
    LayerWeights layer;
    ExpertWeights experts;
  };
  void Start();  // loading next_
  Loaded Take();

  WeightTarget target_;
  WeightStreamOptions options_;
  std::vector<int> readers_;  // ranks that read for each other
  std::vector<Part> parts_;
  size_t next_ = 0;      // in parts_
  WeightLoader loader_;  // used by the loading thread while loading_ is valid, and so is
  std::vector<at::Tensor> loaded_;
  std::future<Loaded> loading_;
};

}  // namespace oscar
