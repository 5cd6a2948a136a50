// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads rows that the write kernel stored on the host, code by code, and compares them with the
// scalar codec. Trap: they must agree bit by bit, so both must start from the same rotated bf16
// values, which only the kernel can give.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "export/cuda/cache/cache_format.h"
#include "linalg/percentile_clip.h"

namespace oscar {

// Stored keys or values of one KV head.
struct StoredRows {
  int64_t tokens = 0, dim = 0, groups = 0;
  std::vector<uint8_t> codes;       // [tokens, dim]
  std::vector<float> scales_zeros;  // [tokens, groups, 2], as stored
};

// Reads quantized tokens 0, 1, ... of a request whose pages are consecutive in `pages`.
StoredRows ReadStoredRows(std::span<const uint8_t> pages, const CacheFormat& format,
                          int num_kv_heads, int head, CacheOrder side, int64_t tokens);

// Returns (code - zero) * scale with one rounding each: [tokens, dim].
std::vector<float> DequantizeRows(const StoredRows& rows);

struct CodecAgreement {
  int64_t codes = 0;  // number of compared codes
  int64_t differing_codes = 0;
  int64_t differing_metadata = 0;   // scales and zeros with other bits
  int64_t differing_simulated = 0;  // values that the simulator reads back with other bits

  void Add(const CodecAgreement& other);
  int64_t differing() const { return differing_codes + differing_metadata + differing_simulated; }
};

// `rotated` [tokens, dim]: the rows that were quantized, bf16 as float32, not yet clipped. The
// scalar codec clips them by the exact order statistic of `clip_ratio` (if > 0). `simulated`
// [tokens, dim]: the rows that the simulator reads back.
CodecAgreement CompareWithCodec(const StoredRows& stored, const PagedSide& side,
                                MetadataType metadata, double clip_ratio,
                                std::span<const float> rotated, std::span<const float> simulated);

}  // namespace oscar
