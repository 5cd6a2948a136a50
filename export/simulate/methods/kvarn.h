// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// KVarN (arXiv 2606.03458). Every head is rotated by a Hadamard matrix and cut into tiles of
// tokens. The rows and columns of a tile are scaled to equal variance before the tile is quantized.
// Rows are channels for keys and tokens for values.
#pragma once

#include "export/simulate/cache_method.h"

namespace oscar {

struct KvarnOptions {
  int k_bits = 4, v_bits = 2;  // 0: not quantized
  int64_t tile = 128;          // tokens
  int iterations = 16;         // newer releases: 8
};

inline constexpr int64_t kKvarnSink = 128;  // tokens

// Keeps the first 128 tokens and the unfinished tile exact. A tile is quantized as soon as it has
// its last token.
LayerCache KvarnCache(const KvarnOptions& options);
CacheCost KvarnCost(const KvarnOptions& options, const std::vector<LayerSpec>& layers,
                    int64_t tokens);

}  // namespace oscar
