// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of attention_kl.h. Each has its own translation unit because they compile slowly.
#pragma once

#include <cuda_runtime.h>

#include "export/cuda/attention_kl/attention_kl_params.h"

namespace oscar::kl {

// Returns the number of columns of V that one CTA multiplies. Wider values are split over CTAs,
// each of which recomputes the logits.
constexpr int OutputColumns(int padded_head_dim) { return padded_head_dim == 64 ? 64 : 128; }
constexpr int OutputTiles(int head_dim, int v_head_dim) {
  const int columns = OutputColumns((head_dim + 63) / 64 * 64);
  return (v_head_dim + columns - 1) / columns;
}

// Launches the wgmma kernel, which needs compute capability 9.0. Sets params.tile_keys.
void LaunchHopper(KlParams params, int items, cudaStream_t stream);

// Launches the mma.sync kernel, for compute capability 8.0 and later. Sets params.tile_keys.
void LaunchPortable(KlParams params, int items, cudaStream_t stream);

// Throws UsageError if `bytes` exceeds a CTA's shared memory limit on this device.
void CheckSharedBytes(int bytes, const KlParams& params);

}  // namespace oscar::kl
