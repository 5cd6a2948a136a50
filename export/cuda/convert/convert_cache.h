// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Pages to other layouts and back: plain codes, for tests and validation, and the token-major
// layout of upstream's server. Trap: upstream's layout has 2-bit codes and float32 scales and zeros
// only; converting a cache of other bits or metadata to it throws UsageError.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "export/cuda/cache/cache_view.h"

namespace oscar {

// Quantized tokens [begin, begin + num_tokens) of one request, plainly. Null arrays are skipped.
struct UnpackedRows {
  uint8_t* k_codes = nullptr;       // [num_tokens, num_kv_heads, k.dim]
  uint8_t* v_codes = nullptr;       // [num_tokens, num_kv_heads, v.dim]
  float* k_scales_zeros = nullptr;  // [num_tokens, num_kv_heads, groups, {scale, zero}]
  float* v_scales_zeros = nullptr;  // alike
};
void UnpackPages(const CacheView& view, int request, int64_t begin, int64_t num_tokens,
                 const UnpackedRows& rows, cudaStream_t stream);

// Upstream's layout of keys and values; row i holds quantized token `begin` + i of a request, or
// slot slots[i] where `slots` is given.
struct TokenMajorRows {
  uint8_t* k_codes = nullptr;  // [num_slots, num_kv_heads, k.dim / 4], int2_format.h
  uint8_t* v_codes = nullptr;
  float* k_scales_zeros = nullptr;  // [num_slots, num_kv_heads, 2 groups]
  float* v_scales_zeros = nullptr;
  const int64_t* slots = nullptr;  // device [num_tokens]
};
void PagesToTokenMajor(const CacheView& view, int request, int64_t begin, int64_t num_tokens,
                       const TokenMajorRows& rows, cudaStream_t stream);
void TokenMajorToPages(const CacheView& view, int request, int64_t begin, int64_t num_tokens,
                       const TokenMajorRows& rows, cudaStream_t stream);

}  // namespace oscar
