// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Kitty (arXiv 2511.18643). Keys are quantized per channel in pages of 128 tokens, and values per
// token, as in KIVI. The key channels with the largest mean |k| of a page get 4 bits, all others 2.
// While decoding, a full key buffer is quantized only when another token arrives. A prefill
// quantizes all of its full pages, but nothing if it just fills the buffer.
#pragma once

#include "export/simulate/cache_method.h"
#include "linalg/affine_families.h"

namespace oscar {

enum class KittyVariant {
  kSimulator,  // rounds half to even; the range is at least 1e-4 for 16-bit rows, else 1e-6
  kKernel,     // rounds half up; the scale is at least 1e-6
};

struct KittyOptions {
  double boosted = 0.125;  // rho: share of the key channels that get 4 bits
  KittyVariant variant = KittyVariant::kSimulator;
  bool quantizes = true;
};

inline constexpr int64_t kKittyPage = 128;  // tokens per page, key buffer and recent values
inline constexpr int64_t kKittySink = 32;   // tokens

// Returns the quantizer of channels that are not boosted. `sixteen_bit_rows`: whether the rows to
// be quantized are stored in 16 bits, which sets a limit of kSimulator.
AffineRule KittyRule(KittyVariant variant, bool sixteen_bit_rows);

// Returns the position up to which a query reads quantized keys. The cache has `length` tokens,
// including the query's own, after a prefill of `prefill_tokens`. A query within the prefill reads
// the cache as if the prefill had ended just before the query.
int64_t KittyKeysEnd(int64_t length, int64_t prefill_tokens);

// Reads back quantized keys of pages [pages, 128, num_kv_heads, dim], float32 or float64.
at::Tensor KittyKeysRoundTrip(const at::Tensor& pages, double boosted, const AffineRule& rule);

LayerCache KittyCache(const KittyOptions& options, int64_t prefill_tokens);
CacheCost KittyCost(const KittyOptions& options, const std::vector<LayerSpec>& layers,
                    int64_t tokens);

}  // namespace oscar
