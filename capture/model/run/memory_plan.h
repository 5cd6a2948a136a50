// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Estimates what the streaming path will read and hold, from shapes alone, for --dry-run. It covers
// LayerLoop::Run; memory of observers is not included.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>

#include "capture/model/run/layer_loop.h"

namespace oscar {

// The workspace that cuBLAS allocates per thread and stream on a Hopper GPU, as requested by
// LibTorch.
inline constexpr uint64_t kCublasWorkspaceBytes = uint64_t{33} << 20;

// All in bytes. device_peak and host_peak say which terms are on the device and which on the host.
struct MemoryPlan {
  uint64_t weights_read = 0;   // from disk: all layers, and the embedding rows of `tokens` tokens
  uint64_t layer_weights = 0;  // two consecutive parts (layers, runs of experts) in the compute
                               // dtype, at their largest; one without prefetch
  uint64_t staging = 0;        // host memory a layer passes through on its way (pinned for a GPU)
  uint64_t hidden = 0;         // [tokens, hidden_size]
  uint64_t kept = 0;  // other data for all tokens: the experts' sum, keys that layers share
  uint64_t attention =
      0;  // q, k, v, attn_out of the longest step, and the largest attention call's temporaries
  uint64_t temporaries = 0;  // norms, MLP of one token chunk; rope tables
  uint64_t program = 0;  // host memory of the process: its current use, and LibTorch's on first use
  uint64_t workspaces = 0;  // CUDA: cuBLAS's memory for the loop's stream
  uint64_t device_peak =
      0;  // CUDA: layer_weights + hidden + kept + attention + temporaries + workspaces
          // (+ tensors being converted); CPU: 0
  uint64_t host_peak = 0;  // CUDA: staging + program; CPU: the sum of all except weights_read
};

MemoryPlan PlanMemory(const ModelSpec& spec, const Checkpoint& checkpoint, int64_t tokens,
                      int64_t longest_sequence, at::ScalarType dtype, at::DeviceType device,
                      const LoopOptions& options = {});

}  // namespace oscar
