// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The write path of a view on the host, with the scalar codecs: rotate, quantize, pack, store; and
// reading rows back. It does what export/cuda/write does, for every format of host_cache.h,
// including fitted scales and clip ratios per head. The stored bytes do not depend on how a prompt
// is split into calls.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "export/torch/host_cache.h"
#include "linalg/affine_codec.h"  // ScaleFit

namespace oscar {

// How rows of one side are rotated and quantized: y = bf16(bf16(x - mean) rotation), summed in
// float32 from the first coordinate to the last.
struct HostSide {
  const BFloat16Bits* rotation = nullptr;  // [num_kv_heads or 1, dim, dim]; null: the identity
  bool per_head = false;                   // whether every KV head has its own matrix
  const float* mean = nullptr;             // [num_kv_heads, dim]; null: none
  std::vector<double> clip;                // percentiles: [0], [1] or [num_kv_heads]
  ScaleFit scales = ScaleFit::kRange;
  // Error feedback as in WriteSide of export/cuda/write/write_cache.h; null: none.
  const int8_t* feedback = nullptr;
  const float* feedback_units = nullptr;
};

// New rows of all KV heads of the layer, of which the view may have only some.
struct HostRows {
  const BFloat16Bits* k = nullptr;  // [rows, layer_heads, k.dim]
  const BFloat16Bits* v = nullptr;  // [rows, layer_heads, v.dim]
  int64_t layer_heads = 1;
  const int64_t* heads = nullptr;      // [num_kv_heads]: the view's heads; null: all
  const int32_t* row_begin = nullptr;  // [num_requests + 1]
  // Outputs [num_requests, num_kv_heads, tail_slots, dim]: the recent ring before this step, then
  // the step's new rows, all in bf16. Slot = position - length_before + recent_slots. Not written
  // if tail_slots is 0.
  BFloat16Bits* tail_k = nullptr;
  BFloat16Bits* tail_v = nullptr;
  int64_t tail_slots = 0;
};

// Stores the rows that the state says are new, and quantizes the tokens that leave the recent ring.
// Returns how many rows could not be stored; they read as NaN.
int64_t HostWrite(const HostCache& cache, const HostSide& k, const HostSide& v,
                  const HostRows& rows, int num_threads);

// Dequantizes tokens [begin, end) of a request: out [num_kv_heads, end - begin, dim], where head h
// begins at h * head_stride.
void HostReadPages(const HostCache& cache, int request, bool values, int64_t begin, int64_t end,
                   float* out, int64_t head_stride, int num_threads);

// The product y = bf16(x M), or if `transposed` x M^T in unrounded float32. x, y: [rows, heads,
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
