// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of the next-token loss by what a KV cache holds, in float32, without a model in memory:
// the layer loop keeps the hidden states that enter each layer, then layers run again from last to
// first, one at a time, with LibTorch's autograd inside. Hidden states of all layers stay on
// the host, 4 bytes times layers, tokens and hidden size; meant for a few short texts.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/model/model_spec.h"

namespace oscar {

// Of one layer, by sequence: [tokens, num_kv_heads, dim] float32 on the host.
struct CacheGradients {
  std::vector<at::Tensor> k, v;  // by keys after rope, by values
};

// By layer. The loss is the sum of -log p(next token) over all tokens of a sequence but the last:
// a token's gradient does not depend on how a text is cut behind it. Reads the weights twice.
std::vector<CacheGradients> LossGradients(const Checkpoint& checkpoint, const ModelSpec& spec,
                                          at::Device device,
                                          const std::vector<std::vector<int32_t>>& sequences);

}  // namespace oscar
