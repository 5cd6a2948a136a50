// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads quantized rows back as numbers, still rotated, for attention of many queries.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "export/cuda/cache/cache_view.h"

namespace oscar {

// Dequantizes tokens [begin, begin + num_tokens) of those that a request has in pages, for any
// cache format. Writes device arrays k [num_kv_heads, num_tokens, k.dim] and v [num_kv_heads,
// num_tokens, v.dim]. T is float or __nv_bfloat16.
template <typename T>
void ReadPages(const CacheView& view, int request, int64_t begin, int64_t num_tokens, T* k, T* v,
               cudaStream_t stream);

}  // namespace oscar
