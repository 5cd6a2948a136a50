// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Kitty (arXiv 2511.18643): KIVI's grouping in pages of 128 tokens, where the channels with the
// largest mean |k| of a page get 4 bits. While decoding, the key buffer is not emptied when it is
// full, but when a token arrives that does not fit. A prefill empties it, unless it just fills it.
#pragma once

#include "export/simulate/cache_method.h"
#include "linalg/affine_families.h"

namespace oscar {

enum class KittyVariant {
  kSimulator,  // half to even; the range is at least 1e-4 for 16-bit rows, 1e-6 for others
  kKernel,     // half up; the scale is at least 1e-6
};

struct KittyOptions {
  double boosted = 0.125;  // rho: share of the key channels that get 4 bits
  KittyVariant variant = KittyVariant::kSimulator;
  bool quantizes = true;
};

inline constexpr int64_t kKittyPage = 128;  // tokens; also of the key buffer and recent values
inline constexpr int64_t kKittySink = 32;   // tokens

// Returns the quantizer of rows, which are stored in 16 bits or not. Its bits are those of channels
// that are not boosted.
AffineRule KittyRule(KittyVariant variant, bool sixteen_bit_rows);

// Returns the end of the keys that a query reads quantized. The cache has `length` tokens,
// including the query's own, after a prefill of `prefill_tokens`. A query within the prefill reads
// what a prefill that ended before it would have left.
int64_t KittyKeysEnd(int64_t length, int64_t prefill_tokens);

// Reads back quantized keys of pages [pages, 128, num_kv_heads, dim], float32 or float64.
at::Tensor KittyKeysRoundTrip(const at::Tensor& pages, double boosted, const AffineRule& rule);

LayerCache KittyCache(const KittyOptions& options, int64_t prefill_tokens);
CacheCost KittyCost(const KittyOptions& options, const std::vector<LayerSpec>& layers,
                    int64_t tokens);

}  // namespace oscar
