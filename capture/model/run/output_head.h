// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The end of a model, from final hidden states to logits. Its weights are read once and kept on the
// compute device. They are as large as the embedding, so drop them when the logits are done.
#pragma once

#include <ATen/core/Tensor.h>

#include "capture/model/run/layer_weights.h"
#include "capture/model/run/weight_loader.h"
#include "capture/model/spec/model_spec.h"

namespace oscar {

class OutputHead {
 public:
  // Keeps a reference to the spec. Reads the final norm and head. Throws InputError if the config
  // ties the head to the embedding but the checkpoint stores a different head.
  OutputHead(const Checkpoint& checkpoint, const ModelSpec& spec, const WeightTarget& target);

  // Applies final norm and head.  // [n, hidden_size] -> [n, vocab_size], compute dtype
  at::Tensor Logits(const at::Tensor& hidden) const;

 private:
  const ModelSpec& spec_;
  NormWeights norm_;    // [hidden_size]
  LinearWeights head_;  // [vocab_size, hidden_size]
};

}  // namespace oscar
