// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What the streaming path will read and hold, from shapes alone, for --dry-run. It covers
// LayerLoop::Run; what observers keep comes on top.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>

#include "capture/model/layer_loop.h"

namespace oscar {

// What cuBLAS allocates per thread and stream on a Hopper GPU, as LibTorch asks it to.
inline constexpr uint64_t kCublasWorkspaceBytes = uint64_t{33} << 20;

// All in bytes. Which terms lie on the device and which on the host: see device_peak, host_peak.
struct MemoryPlan {
  uint64_t weights_read = 0;   // from disk: all layers, and the embedding rows of `tokens` tokens
  uint64_t layer_weights = 0;  // two parts in a row (layers, runs of experts) in the compute dtype,
                               // where they are largest; one without prefetch
  uint64_t staging = 0;        // host memory a layer passes through on its way (pinned for a GPU)
  uint64_t hidden = 0;         // [tokens, hidden_size]
  uint64_t kept = 0;  // what else stands for all tokens: the experts' sum, keys that layers share
  uint64_t attention =
      0;  // q, k, v, attn_out of the longest step, and the largest attention call's temporaries
  uint64_t temporaries = 0;  // norms, MLP of one token chunk; rope tables
  uint64_t program =
      0;  // host memory of the process itself: what it holds now, and what LibTorch adds when used
  uint64_t workspaces = 0;  // CUDA: what cuBLAS keeps for the loop's stream
  uint64_t device_peak =
      0;  // CUDA: layer_weights + hidden + kept + attention + temporaries + workspaces
          // (+ tensors being converted); CPU: 0
  uint64_t host_peak = 0;  // CUDA: staging + program; CPU: the sum of all but weights_read
};

MemoryPlan PlanMemory(const ModelSpec& spec, const Checkpoint& checkpoint, int64_t tokens,
                      int64_t longest_sequence, at::ScalarType dtype, at::DeviceType device,
                      const LoopOptions& options = {});

}  // namespace oscar
