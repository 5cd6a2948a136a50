// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Bits per stored K or V element of one sequence, by the papers' formula and by the bytes that a
// runtime allocates. Trap: upstream's metadata is float32 by default, so the 2.25 bits of the paper
// are 2.5 in memory before any window.
#pragma once

#include <cstdint>
#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

// The cost of one row (token, KV head, K or V). Defaults: OSCAR INT2 as the paper counts it.
struct CacheLayout {
  double payload_bits = 2;           // per element, mean over K and V; 16: not quantized
  double metadata_bits = 32;         // per group of quant_group_size values: bf16 scale and zero
  double actual_metadata_bits = 64;  // allocated bits: float32 scale and zero, upstream's default
  int64_t quant_group_size = 128;    // values
  int64_t sink_tokens = 64;          // first tokens, stored in 16 bits
  int64_t recent_tokens = 256;       // last tokens, stored in 16 bits
};

inline constexpr double kKeptBits = 16;
inline constexpr int64_t kDemotionTokens = 8;  // N_Q: tokens that leave the recent window at once

// Returns [(L - S0 - W) (b + M / g) + 16 (S0 + W)] / L, or 16 if L <= S0 + W. `tokens` = L >= 1.
double PaperBitsPerElement(const CacheLayout& layout, int64_t tokens);

// Returns the allocated bits per element for L >= 1 tokens. Counts metadata of
// `actual_metadata_bits`, the sinks, a ring of W + 7 tokens, and quantized tokens in pages of 8.
// Only whole pages leave the ring. Without recent tokens there is no ring, and the last page is
// rounded up. The result exceeds 16 for short sequences, whose ring is mostly empty.
double ActualBitsPerElement(const CacheLayout& layout, int64_t tokens);

// Returns how many bits per value an artifact's own choice takes: in codes, with scales and zeros,
// and in a cache of 8,192 tokens with its windows; "" if `serving`, the member of report.json, has
// no automatic choice.
std::string BitsText(const Json& serving);

}  // namespace oscar
