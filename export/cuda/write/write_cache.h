// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The write path of the cache: rotate, clip, quantize, pack, store. For the same rotated bf16
// values, codes and metadata are bit for bit those of linalg/affine_codec.h, or with error feedback
// those of linalg/feedback_codec.h. Trap: view.lengths and view.quantized must hold the values
// *after* the call. The caller updates them before the call, once per step for all layers; nothing
// here changes them.
//
// Rows are x [tokens, num_kv_heads, dim] bf16. They are rotated as y = x R with float32
// accumulation and rounded to bf16. If a value, scale or zero of a quantized row is not finite, the
// row is stored with codes 0, scales NaN and zeros 0, and counted in *bad_rows. Reading it gives
// NaN, never a wrong number.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <span>

#include "export/cuda/cache/cache_view.h"
#include "linalg/affine_codec.h"  // ScaleFit, ClipMethod

namespace oscar {

struct WriteSide {
  const __nv_bfloat16* rotation = nullptr;  // [num_kv_heads or 1, dim, dim]; null: not rotated
  bool per_head = true;                     // whether `rotation` has a matrix for every KV head
  double clip_ratio = 0;                    // <= 0: not clipped
  // Host array [num_kv_heads] that replaces clip_ratio, for up to kMaxClipHeads heads. Empty:
  // clip_ratio for all heads.
  std::span<const double> head_clip_ratios = {};
  ScaleFit scales = ScaleFit::kRange;
  // Error feedback factors on the device, from PackFeedbackFactor (linalg/error_feedback.h):
  // columns [num_kv_heads, dim, FeedbackStride(dim)], 16-byte aligned, and units [num_kv_heads].
  // Null: none.
  const int8_t* feedback = nullptr;
  const float* feedback_units = nullptr;
};

struct WriteOptions {
  WriteSide k, v;
  ClipMethod clip_method = ClipMethod::kSort;
  uint32_t* bad_rows = nullptr;  // device counter, incremented; required if rows are quantized
  // If not null, WritePrefill also writes the rotated rows here, in the layout of the inputs.
  __nv_bfloat16* rotated_k = nullptr;
  __nv_bfloat16* rotated_v = nullptr;
  // Lets WritePrefill start while the previous kernel in the stream ends (programmatic dependent
  // launch, sm_90). That kernel may write anything except the rotations.
  bool overlap_previous = false;
};

// The new tokens of one or more requests, one request after the other.
struct PrefillTokens {
  const __nv_bfloat16* k = nullptr;         // [num_tokens, num_kv_heads, k.dim]
  const __nv_bfloat16* v = nullptr;         // [num_tokens, num_kv_heads, v.dim]
  int num_tokens = 0;                       // total of all requests
  const int32_t* row_begin = nullptr;       // device [num_requests + 1]: first row of each request
  const int32_t* position_begin = nullptr;  // device [num_requests]: position of that row; null: 0
};

// Writes every token to the place that `view` assigns to its position: quantized into pages, or
// rotated bf16 into the windows. Tokens of earlier calls are not changed, so a prompt may come in
// chunks. If window tokens become quantized because the sequence grows, call FlushWindows *before*
// this to move them.
void WritePrefill(const CacheView& view, const WriteOptions& options, const PrefillTokens& tokens,
                  cudaStream_t stream);

// Writes one new token of every request into the windows, at position lengths[request] - 1. Skips
// requests of length 0. k: [num_requests, num_kv_heads, k.dim], v: [num_requests, num_kv_heads,
// v.dim].
void AppendTokens(const CacheView& view, const WriteOptions& options, const __nv_bfloat16* k,
                  const __nv_bfloat16* v, cudaStream_t stream);

// Quantizes window tokens, which are already rotated: moves the quantized tokens
// [quantized_before[r], quantized[r]) of each request r from the recent ring into pages. The launch
// is sized for `max_tokens` per request (8 for a decode flush). If a request has more, CTAs loop
// over them.
void FlushWindows(const CacheView& view, const WriteOptions& options,
                  const int32_t* quantized_before, int max_tokens, cudaStream_t stream);

// Computes y = x R or x Rᵀ, rounded to bf16. x and y are [num_rows, num_heads, dim], and are the
// same array or disjoint. Head h uses matrix h / (num_heads / num_matrices): a query uses the
// rotation of its KV head, an attention output its transpose.
struct RotateArguments {
  const __nv_bfloat16* x = nullptr;
  __nv_bfloat16* y = nullptr;
  int64_t num_rows = 0;
  int num_heads = 1;
  int dim = 128;                            // a multiple of 32, 64 to 512
  const __nv_bfloat16* rotation = nullptr;  // [num_matrices, dim, dim]
  int num_matrices = 1;                     // divides num_heads
  bool transposed = false;
};
void RotateRows(const RotateArguments& arguments, cudaStream_t stream);

}  // namespace oscar
