// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What the decode kernel is launched with: between decode_attention.cc, which checks and plans, and
// the compiled instances. Trap: passed by value as a kernel parameter, of which CUDA takes 4 KB.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "export/cuda/decode/decode_attention.h"

namespace oscar {

inline constexpr int kDecodeWarps = 8;  // of a CTA
inline constexpr int kUnitHeads = 8;    // query heads of a unit: the N of the mma, padded

struct DecodeKernelArguments {
  DecodeArguments call;
  int num_q_heads, heads_per_unit, units_per_kv_head;
  int record_bytes, k_metadata, v_metadata;  // byte sizes and offsets in a record
  int tiles_per_page_log2;
  int64_t page_bytes;
  int window_tile_cost;  // of a bf16 tile, in quantized tiles
  float* partial_out;    // [ctas, heads_per_unit, v.dim]
  float2* partial_sums;  // [ctas, heads_per_unit]: reference and denominator
  int* arrivals;         // [num_requests, units], zero between launches
  uint16_t first_split[kMaxDecodeRequests + 1];
};

// One pair of head dims; defined in instances/.
template <int kK, int kV>
void LaunchDecode(const DecodeKernelArguments& args, bool general, dim3 grid, cudaStream_t stream);

// Quantized CTAs that fit an SM, as the instances are compiled.
constexpr int DecodeCtasPerSm(int k_dim, int v_dim, bool general) {
  return k_dim + v_dim <= 256 && !general ? 2 : 1;
}

}  // namespace oscar
