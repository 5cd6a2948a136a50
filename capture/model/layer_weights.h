// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The weights of one layer on the compute device, and their arrival in time: while a layer
// computes, the next one is read and uploaded by a thread of its own. Trap: at most two layers are
// in memory, which holds only if the caller drops a layer before it asks for the next.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <future>
#include <memory>

#include "capture/model/model_spec.h"
#include "capture/model/weight_loader.h"

namespace oscar {

struct LinearWeights {
  at::Tensor weight;  // [out_features, in_features]
  at::Tensor bias;    // [out_features], undefined for none
};

// All in the compute dtype on the compute device. Undefined: not part of the layer, or not asked
// for.
struct LayerWeights {
  at::Tensor attention_norm, mlp_norm;  // [hidden_size]
  LinearWeights q, k, v, o;
  at::Tensor q_norm, k_norm;  // [head_dim]
  LinearWeights gate, up, down;
};

// `attention_only`: no more than q, k, v need.
LayerWeights LoadLayer(WeightLoader& loader, const LayerSpec& layer, bool attention_only = false);

struct WeightStreamOptions {
  size_t first_layer = 0;
  bool last_attention_only = false;
  bool prefetch = true;  // false: one layer in memory instead of two
  ReadMode read = ReadMode::kAuto;
};

// Hands out layers first_layer, first_layer + 1, ... Not thread-safe; the checkpoint and spec must
// outlive it.
class WeightStream {
 public:
  WeightStream(const Checkpoint& checkpoint, const ModelSpec& spec, const WeightTarget& target,
               const WeightStreamOptions& options);
  ~WeightStream();  // waits for a load under way

  // The next layer, waiting for it if it is not there yet; starts on the one after. The layer
  // handed out before must have been dropped and its last kernel been launched. Throws what the
  // loading threw.
  LayerWeights Next();

 private:
  void Start();  // loading next_

  const ModelSpec& spec_;
  WeightTarget target_;
  WeightStreamOptions options_;
  size_t next_;
  WeightLoader loader_;  // used by the loading thread while loading_ is valid
  std::future<LayerWeights> loading_;
};

}  // namespace oscar
