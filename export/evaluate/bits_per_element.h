// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The bits per stored element of K or V in one sequence, by the papers' formula and by the bytes
// that a runtime allocates. Trap: upstream stores scales and zeros as float32 by default. So the
// paper's 2.25 bits take 2.5 in memory, even without windows.
#pragma once

#include <cstdint>
#include <string>

#include "capture/files/strict_json.h"

namespace oscar {

// The cost of one row (token, KV head, K or V). The defaults are OSCAR INT2 as the paper counts it.
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

// Returns the paper's bits per element for L = `tokens` >= 1: [(L - S0 - W) (b + M / g) + 16 (S0 +
// W)] / L, or 16 if L <= S0 + W.
double PaperBitsPerElement(const CacheLayout& layout, int64_t tokens);

// Returns the allocated bits per element for L >= 1 tokens. Counts metadata at
// `actual_metadata_bits`, the sinks, a ring of W + 7 tokens, and quantized tokens in pages of 8, of
// which only whole ones leave the ring. Without recent tokens there is no ring, and the last page
// is rounded up. The result exceeds 16 for short sequences, whose ring is mostly empty.
double ActualBitsPerElement(const CacheLayout& layout, int64_t tokens);

// Describes the bits per value of an artifact's automatic choice: in codes, with scales and zeros,
// and in a cache of 8,192 tokens with its windows. `serving` is a member of report.json. Returns ""
// if it has no automatic choice.
std::string BitsText(const Json& serving);

}  // namespace oscar
