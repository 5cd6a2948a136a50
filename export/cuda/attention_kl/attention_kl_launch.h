// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels behind attention_kl.h, one translation unit each because they compile slowly.
#pragma once

#include <cuda_runtime.h>

#include "export/cuda/attention_kl/attention_kl_params.h"

namespace oscar::kl {

// Columns of V that a CTA multiplies; wider ones are cut, and their logits computed again.
constexpr int OutputColumns(int padded_head_dim) { return padded_head_dim == 64 ? 64 : 128; }
constexpr int OutputTiles(int head_dim, int v_head_dim) {
  const int columns = OutputColumns((head_dim + 63) / 64 * 64);
  return (v_head_dim + columns - 1) / columns;
}

// wgmma, compute capability 9.0. params.tile_keys is set here.
void LaunchHopper(KlParams params, int items, cudaStream_t stream);

// mma.sync, from 8.0. The same.
void LaunchPortable(KlParams params, int items, cudaStream_t stream);

// Shared memory a CTA may have on the current device; throws UsageError if `bytes` is more.
void CheckSharedBytes(int bytes, const KlParams& params);

}  // namespace oscar::kl
