// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// OScaR (arXiv 2605.19660), which is not OSCAR. Heads are rotated by a Hadamard matrix. Keys are
// divided by one norm per token, over all its KV heads, and quantized per channel over 32 tokens.
// Values are quantized per token over 32 channels. Both use family A4 (linalg/affine_families.h).
#pragma once

#include "export/simulate/cache_method.h"
#include "linalg/affine_families.h"

namespace oscar {

struct OscarKvOptions {
  int bits = 2;  // 0: not quantized
};

inline constexpr int64_t kOscarKvResidual = 128;  // tokens, for keys and for values
inline constexpr int64_t kOscarKvGroup = 32;      // tokens for keys, channels for values

AffineRule OscarKvRule(int bits);

// Reads back rotated keys in blocks [blocks, 128, num_kv_heads, dim], float32 or float64.
at::Tensor OscarKvKeysRoundTrip(const at::Tensor& blocks, const AffineRule& rule);

// Keeps the keys and values of an unfinished block of 128 tokens exact. The query of the step that
// fills a block still reads it exactly.
LayerCache OscarKvCache(const OscarKvOptions& options);
CacheCost OscarKvCost(const OscarKvOptions& options, const std::vector<LayerSpec>& layers,
                      int64_t tokens);

}  // namespace oscar
