// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The mixed-precision KV cache of one layer in device memory: quantized pages for the middle of a
// sequence, bf16 windows for its first and last tokens. Trap: keys and values are stored rotated.
// Rotate queries with the keys' matrix; attention outputs are rotated with the values' matrix.
//
// Token p of a request with `length` tokens, of which `quantized` are in pages:
//
//   p < sink_tokens              window slot p
//   p < sink_tokens + quantized  quantized token p - sink_tokens
//   the rest (recent tokens)     window slot sink_tokens + (p - sink_tokens) % recent_slots
//
// Quantized token i is token i % page_tokens of page page_table[request][i / page_tokens]. A
// sequence shorter than sink_tokens has no quantized and no recent tokens.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "export/cuda/cache/cache_format.h"

namespace oscar {

struct CacheView {
  CacheFormat format;
  int num_kv_heads = 1;
  int num_requests = 1;

  uint8_t* pages = nullptr;             // [num_pages] pages of PageBytes()
  const int32_t* page_table = nullptr;  // [num_requests, page_table_stride], page numbers
  int page_table_stride = 0;            // entries per request
  const int32_t* lengths = nullptr;     // [num_requests], total tokens
  const int32_t* quantized = nullptr;   // [num_requests], tokens in pages: a multiple of 8

  // [num_windows, num_kv_heads] of { K [WindowSlots, k.dim], V [WindowSlots, v.dim] }
  __nv_bfloat16* windows = nullptr;
  const int32_t* window_of_request = nullptr;  // [num_requests], window numbers
  int sink_tokens = 64;                        // a multiple of 16
  int recent_slots = 272;  // a multiple of 16; holds all tokens that are neither sinks nor
                           // quantized
};

constexpr int WindowSlots(const CacheView& view) { return view.sink_tokens + view.recent_slots; }
constexpr int64_t WindowHeadValues(const CacheView& view) {  // values of one head's keys and values
  return int64_t{WindowSlots(view)} * (view.format.k.dim + view.format.v.dim);
}
constexpr int64_t WindowBytes(const CacheView& view) {  // bytes of one request, all heads
  return 2 * view.num_kv_heads * WindowHeadValues(view);
}

// Throws UsageError if the format, the counts or the windows are not supported, and says what is.
void CheckCacheView(const CacheView& view);

}  // namespace oscar
