// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of the write kernels, passed by value. `clip_index` counts from the smallest magnitude,
// as in linalg/percentile_clip.h; -1 means no clipping.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "export/cuda/cache/cache_view.h"

namespace oscar {

inline constexpr int kMaxClipHeads = 128;  // the most KV heads that may have their own clip ratios

struct SideArguments {
  const __nv_bfloat16* x = nullptr;         // [rows, num_kv_heads, dim]; null in a flush
  __nv_bfloat16* rotated = nullptr;         // same shape, or null
  const __nv_bfloat16* rotation = nullptr;  // [num_kv_heads or 1, dim, dim], or null
  int64_t rotation_stride = 0;              // values between heads
  PagedSide side;
  int clip_index = -1;
  bool clip_of_head = false;  // uses head_clip instead of clip_index
  int16_t head_clip[kMaxClipHeads] = {};
  ScaleFit scales = ScaleFit::kRange;
  float clip_guess = 0;     // threshold of a Gaussian row, divided by the sum of its spreads
  float spread_share = 0;   // standard deviation of such a row, divided by the same sum
  bool transposed = false;  // codes in V's order
  int codes_offset = 0;     // byte offset in a record
  int metadata_offset = 0;
  const int8_t* feedback = nullptr;  // as in WriteSide
  const float* feedback_units = nullptr;

  __host__ __device__ int ClipIndexOf(int head) const {
    return clip_of_head ? head_clip[head] : clip_index;
  }
};

struct WriteArguments {
  CacheView view;
  SideArguments sides[2];  // keys, values
  bool bisect = false;     // finds thresholds by bisection
  bool overlap_previous = false;
  uint32_t* bad_rows = nullptr;
  const int32_t* row_begin = nullptr;         // as in PrefillTokens
  const int32_t* position_begin = nullptr;    // as in PrefillTokens
  const int32_t* quantized_before = nullptr;  // for a flush; null in a prefill
  int page_bytes = 0;                         // computed from `view` to save a division
  int head_bytes = 0;                         // bytes of a head in a page
  int record_bytes = 0;
  int page_tokens_log2 = 0;
  int rows = 0;   // rows of the inputs in a prefill
  int tiles = 0;  // prefill: upper bound over all requests; flush: CTAs per request, which loop
};

}  // namespace oscar
