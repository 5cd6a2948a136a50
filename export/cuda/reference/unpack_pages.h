// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Unpacks pages into plain codes with one thread per value, to check kernels that write pages.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "export/cuda/cache/cache_view.h"

namespace oscar {

// Quantized tokens [begin, begin + num_tokens) of one request, unpacked. Null arrays are skipped.
struct UnpackedRows {
  uint8_t* k_codes = nullptr;       // [num_tokens, num_kv_heads, k.dim]
  uint8_t* v_codes = nullptr;       // [num_tokens, num_kv_heads, v.dim]
  float* k_scales_zeros = nullptr;  // [num_tokens, num_kv_heads, groups, {scale, zero}]
  float* v_scales_zeros = nullptr;  // the same for values
};
void UnpackPages(const CacheView& view, int request, int64_t begin, int64_t num_tokens,
                 const UnpackedRows& rows, cudaStream_t stream);

}  // namespace oscar
