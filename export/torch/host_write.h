// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The write path of a view on the host, with the scalar codecs: rotate, quantize, pack, store. Also
// reads rows back. It does what export/cuda/write does, for every format of host_cache.h, with
// fitted scales and a clip ratio per head. The stored bytes do not depend on how a prompt is split
// into calls.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "export/torch/host_cache.h"
#include "linalg/affine_codec.h"  // ScaleFit

namespace oscar {

// How rows of keys or values are rotated and quantized. A rotated row is y = bf16(bf16(x - mean) *
// rotation), summed in float32 from the first coordinate to the last.
struct HostSide {
  const BFloat16Bits* rotation = nullptr;  // [num_kv_heads or 1, dim, dim]; null: the identity
  bool per_head = false;                   // whether every KV head has its own matrix
  const float* mean = nullptr;             // [num_kv_heads, dim]; null: none
  std::vector<double> clip;                // percentiles: none, one for all heads, or one each
  ScaleFit scales = ScaleFit::kRange;
  // Error feedback as in WriteSide of export/cuda/write/write_cache.h; null: none.
  const int8_t* feedback = nullptr;
  const float* feedback_units = nullptr;
};

// New rows of all KV heads of the layer. The view may have only some of these heads.
struct HostRows {
  const BFloat16Bits* k = nullptr;  // [rows, layer_heads, k.dim]
  const BFloat16Bits* v = nullptr;  // [rows, layer_heads, v.dim]
  int64_t layer_heads = 1;
  const int64_t* heads = nullptr;      // [num_kv_heads]: the view's heads; null: all
  const int32_t* row_begin = nullptr;  // [num_requests + 1]
  // Outputs [num_requests, num_kv_heads, tail_slots, dim], bf16: the recent ring before this step,
  // followed by the step's new rows. The slot of a position is position - length_before +
  // recent_slots. Not written if tail_slots is 0.
  BFloat16Bits* tail_k = nullptr;
  BFloat16Bits* tail_v = nullptr;
  int64_t tail_slots = 0;
};

// Stores the new rows (length_before to length) and quantizes the tokens that leave the recent
// ring. Returns how many rows could not be stored; these read as NaN.
int64_t HostWrite(const HostCache& cache, const HostSide& k, const HostSide& v,
                  const HostRows& rows, int num_threads);

// Dequantizes tokens [begin, end) of those that a request has in pages: out [num_kv_heads, end -
// begin, dim], where head h begins at h * head_stride.
void HostReadPages(const HostCache& cache, int request, bool values, int64_t begin, int64_t end,
                   float* out, int64_t head_stride, int num_threads);

// Computes y = bf16(x M), or with `transposed` y = x M^T in unrounded float32. x, y: [rows, heads,
// dim]. Head h uses matrix h / (heads / num_matrices) of M [num_matrices, dim, dim].
struct HostProduct {
  const float* x = nullptr;
  float* y = nullptr;
  int64_t rows = 0, heads = 1, dim = 128;
  const BFloat16Bits* matrices = nullptr;
  int64_t num_matrices = 1;
  bool transposed = false;
};
void HostMultiply(const HostProduct& product, int num_threads);

}  // namespace oscar
