// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Bits per stored K or V element of one sequence: the papers' formula and the bytes a runtime
// allocates. Trap: upstream's metadata is float32 unless told otherwise, so the 2.25 bits of the
// paper are 2.5 in memory before any window.
#pragma once

#include <cstdint>

namespace oscar {

// The cost of one row (token, KV head, K or V). Defaults: OSCAR INT2 as the paper counts it.
struct CacheLayout {
  double payload_bits = 2;           // per element, mean over K and V; 16: nothing is quantized
  double metadata_bits = 32;         // per group of quant_group_size values: bf16 scale and zero
  double actual_metadata_bits = 64;  // as allocated: float32 scale and zero, upstream's default
  int64_t quant_group_size = 128;    // values
  int64_t sink_tokens = 64;          // first tokens, kept in 16 bits
  int64_t recent_tokens = 256;       // last tokens, kept in 16 bits
};

inline constexpr double kKeptBits = 16;
inline constexpr int64_t kDemotionTokens = 8;  // N_Q: recent tokens are demoted in batches

// [(L - S0 - W) (b + M / g) + 16 (S0 + W)] / L; 16 for L <= S0 + W. `tokens` = L >= 1.
double PaperBitsPerElement(const CacheLayout& layout, int64_t tokens);

// Bytes allocated for L >= 1 tokens over their elements: metadata of `actual_metadata_bits`, the
// sinks, a ring of W + 7 tokens, and quantized tokens in pages of 8, of which only whole ones leave
// the ring. Without recent tokens there is no ring and the last page is rounded up. Above 16 for
// short sequences, where the ring is half empty.
double ActualBitsPerElement(const CacheLayout& layout, int64_t tokens);

}  // namespace oscar
