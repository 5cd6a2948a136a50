// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Estimates what LayerLoop::Run will read and hold in memory, from shapes alone, for --dry-run.
// Memory of observers is not included.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>

#include "capture/model/run/layer_loop.h"

namespace oscar {

// The workspace that cuBLAS allocates per thread and stream on a Hopper GPU, at LibTorch's request.
inline constexpr uint64_t kCublasWorkspaceBytes = uint64_t{33} << 20;

// Sizes in bytes. device_peak and host_peak say which of them are on the device and on the host.
struct MemoryPlan {
  uint64_t weights_read = 0;  // bytes from disk: all layers, and embedding rows for `tokens` tokens
  uint64_t layer_weights = 0;  // largest two consecutive parts (layers, runs of experts) in the
                               // compute dtype; one without prefetch
  uint64_t staging = 0;        // host memory through which a layer passes (pinned for a GPU)
  uint64_t hidden = 0;         // [tokens, hidden_size]
  uint64_t kept = 0;           // other data of all tokens: the experts' sum, keys that layers share
  uint64_t attention =
      0;  // q, k, v, attn_out of the longest step, and temporaries of the largest attention call
  uint64_t temporaries = 0;  // norms and MLP for one token chunk; rope tables
  uint64_t program = 0;      // host memory of the process now, plus what LibTorch adds on first use
  uint64_t workspaces = 0;   // CUDA: cuBLAS's memory for the loop's stream
  uint64_t device_peak =
      0;  // CUDA: layer_weights + hidden + kept + attention + temporaries + workspaces
          // (+ tensors being converted); CPU: 0
  uint64_t host_peak = 0;  // CUDA: staging + program; CPU: the sum of all except weights_read
};

MemoryPlan PlanMemory(const ModelSpec& spec, const Checkpoint& checkpoint, int64_t tokens,
                      int64_t longest_sequence, at::ScalarType dtype, at::DeviceType device,
                      const LoopOptions& options = {});

}  // namespace oscar
