// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Launch arguments of the decode kernel. decode_attention.cc checks and plans, and passes them to
// the compiled instances by value as a kernel parameter, which CUDA limits to 4 KB.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "export/cuda/decode/decode_attention.h"

namespace oscar {

inline constexpr int kDecodeWarps = 8;      // warps per CTA
inline constexpr int kUnitHeads = 8;        // query heads per unit: N of the mma, padded
inline constexpr int kNarrowUnitHeads = 4;  // maximum for a narrow instance

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

// Whether a format has 2 bits in groups of a quarter, with scales that a fast instance supports:
// bytes, or float32 at head dim 128.
constexpr bool HasFastQuarters(const CacheFormat& format) {
  const auto fits = [](const PagedSide& side) {
    return side.bits == 2 && HasQuarters(side.dim) && GroupsPerRow(side) == 4;
  };
  const bool has_instance =
      format.metadata == MetadataType::kByte ||
      (format.metadata == MetadataType::kFloat32 && format.k.dim == 128 && format.v.dim == 128);
  return has_instance && fits(format.k) && fits(format.v);
}
// Whether no fast instance supports a format. Fast instances have 2 bits on both sides and one
// scale per row or per quarter, or any bits with float32 scales at head dim 128.
constexpr bool NeedsGeneralDecode(const CacheFormat& format) {
  if (HasFastQuarters(format)) return false;
  if (format.metadata == MetadataType::kByte) return true;
  if (GroupsPerRow(format.k) != 1 || GroupsPerRow(format.v) != 1) return true;
  if (format.k.bits == 2 && format.v.bits == 2) return false;
  return format.k.dim != 128 || format.v.dim != 128 || format.metadata != MetadataType::kFloat32;
}

// Launches the general instance or a 2-bit one for a pair of head dims. Defined in instances/.
template <int kK, int kV>
void LaunchDecode(const DecodeKernelArguments& args, dim3 grid, cudaStream_t stream);
// Launches the instances that have kKBits for keys.
template <int kK, int kV, int kKBits>
void LaunchDecodeBits(const DecodeKernelArguments& args, dim3 grid, cudaStream_t stream);

// Returns the number of CTAs per SM for which an instance is compiled. Specialized instances for
// small heads run 16 warps per SM, with up to 128 registers per thread; the others run 8 warps.
constexpr int DecodeCtasPerSm(int k_dim, int v_dim, bool general) {
  return (k_dim + v_dim <= 256 && !general ? 16 : 8) / kDecodeWarps;
}
// Returns the bytes of a bf16 window tile, divided by the bytes of a pair of records.
constexpr int WindowTileCost(const CacheFormat& format) {
  const int bytes = kTileTokens * 2 * (format.k.dim + format.v.dim);
  const int cost = (bytes + RecordBytes(format)) / (2 * RecordBytes(format));
  return cost > 1 ? cost : 1;
}

}  // namespace oscar
