// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Launch arguments of the decode kernel, which decode_attention.cc makes from the checked arguments
// and the plan. They are passed by value as a kernel parameter, which CUDA limits to 4 KB.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "export/cuda/decode/decode_attention.h"

namespace oscar {

inline constexpr int kDecodeWarps = 8;      // warps per CTA
inline constexpr int kUnitHeads = 8;        // most query heads per unit: the N of an mma
inline constexpr int kNarrowUnitHeads = 4;  // the same for a narrow instance

struct DecodeKernelArguments {
  DecodeArguments call;
  int num_q_heads, gqa_ratio, heads_per_unit;
  int record_bytes, k_metadata, v_metadata;  // record size, and byte offsets in a record
  int tiles_per_page_log2;
  int64_t page_bytes;
  int window_tile_cost;  // cost of a bf16 tile, in pairs of quantized tiles
  float* partial_out;    // [ctas, heads_per_unit, v.dim]
  float2* partial_sums;  // [ctas, heads_per_unit]: reference and denominator
  int* arrivals;         // [num_requests, units], zero between launches
  uint16_t first_split[kMaxDecodeRequests + 1];
};

// Whether a format has 2-bit codes, quantization groups of a quarter of a head, and scales for
// which there is a fast instance: bytes, or float32 at head dim 128.
constexpr bool HasFastQuarters(const CacheFormat& format) {
  const auto fits = [](const PagedSide& side) {
    return side.bits == 2 && HasQuarters(side.dim) && GroupsPerRow(side) == 4;
  };
  const bool has_instance =
      format.metadata == MetadataType::kByte ||
      (format.metadata == MetadataType::kFloat32 && format.k.dim == 128 && format.v.dim == 128);
  return has_instance && fits(format.k) && fits(format.v);
}
// Whether a format needs the general instance. Fast instances support 2-bit keys and values with
// one scale per row or per quarter of a row. At head dim 128 they support other bits with one
// float32 scale per row.
constexpr bool NeedsGeneralDecode(const CacheFormat& format) {
  if (HasFastQuarters(format)) return false;
  if (format.metadata == MetadataType::kByte) return true;
  if (GroupsPerRow(format.k) != 1 || GroupsPerRow(format.v) != 1) return true;
  if (format.k.bits == 2 && format.v.bits == 2) return false;
  return format.k.dim != 128 || format.v.dim != 128 || format.metadata != MetadataType::kFloat32;
}

// Launches the general instance or a 2-bit instance for a pair of head dims. Defined in instances/.
template <int kK, int kV>
void LaunchDecode(const DecodeKernelArguments& args, dim3 grid, cudaStream_t stream);
// Launches the instances that have kKBits for keys.
template <int kK, int kV, int kKBits>
void LaunchDecodeBits(const DecodeKernelArguments& args, dim3 grid, cudaStream_t stream);

// Returns the number of CTAs per SM for which an instance is compiled. Fast instances for small
// heads run 16 warps per SM, with up to 128 registers per thread; the others run 8 warps.
constexpr int DecodeCtasPerSm(int k_dim, int v_dim, bool general) {
  return (k_dim + v_dim <= 256 && !general ? 16 : 8) / kDecodeWarps;
}
// Returns the bytes of a bf16 window tile divided by those of two records, rounded and at least 1.
constexpr int WindowTileCost(const CacheFormat& format) {
  const int bytes = kTileTokens * 2 * (format.k.dim + format.v.dim);
  const int cost = (bytes + RecordBytes(format)) / (2 * RecordBytes(format));
  return cost > 1 ? cost : 1;
}

}  // namespace oscar
