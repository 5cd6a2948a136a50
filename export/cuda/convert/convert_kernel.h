// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The launches behind convert_cache.h, after its checks. Index 0: keys, 1: values.
#pragma once

#include <cuda_runtime.h>

#include "export/cuda/cache/cache_view.h"

namespace oscar {

struct ConvertArguments {
  CacheView view;
  int request = 0;
  int64_t begin = 0, num_tokens = 0;
  bool packed = false;     // four codes in a byte, as upstream
  uint8_t* codes[2];       // [rows, num_kv_heads, dim or dim / 4], or null
  float* scales_zeros[2];  // [rows, num_kv_heads, 2 groups], or null
  const int64_t* slots = nullptr;
};

void LaunchFromPages(const ConvertArguments& a, cudaStream_t stream);
void LaunchToPages(const ConvertArguments& a, cudaStream_t stream);  // packed

}  // namespace oscar
