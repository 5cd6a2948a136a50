// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads back, code by code on the host, the rows that the write kernel stored, and compares them
// with the scalar codec. Trap: they must agree bit for bit. Both must therefore start from the same
// rotated bf16 values, which only the kernel can supply.
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

// Reads quantized tokens 0, 1, ..., `tokens` - 1 of a request whose pages are consecutive in
// `pages`.
StoredRows ReadStoredRows(std::span<const uint8_t> pages, const CacheFormat& format,
                          int num_kv_heads, int head, CacheOrder side, int64_t tokens);

// Returns (code - zero) * scale, [tokens, dim]. Each operation rounds once.
std::vector<float> DequantizeRows(const StoredRows& rows);

struct CodecAgreement {
  int64_t codes = 0;  // number of compared codes
  int64_t differing_codes = 0;
  int64_t differing_metadata = 0;   // scales and zeros with other bits
  int64_t differing_simulated = 0;  // values that the simulator reads back with other bits

  void Add(const CodecAgreement& other);
  int64_t differing() const { return differing_codes + differing_metadata + differing_simulated; }
};

// Compares stored rows with those of the scalar codec and the simulator. `rotated` [tokens, dim]
// are the rows before clipping and quantization, bf16 values as float32. The scalar codec clips
// them at the exact quantile `clip_ratio`, if that is above 0. `simulated` [tokens, dim] are the
// rows that the simulator reads back.
CodecAgreement CompareWithCodec(const StoredRows& stored, const PagedSide& side,
                                MetadataType metadata, double clip_ratio,
                                std::span<const float> rotated, std::span<const float> simulated);

}  // namespace oscar
