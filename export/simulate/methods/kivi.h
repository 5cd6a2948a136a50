// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// KIVI (arXiv 2402.02750). Keys are quantized per channel over consecutive tokens, values per token
// over neighbouring channels. Both use family A2 (linalg/affine_families.h) with a float16 scale
// and minimum. The most recent tokens are the residual, which stays exact. Keys leave it in whole
// blocks, values one by one. Rows that are quantized in a step are still read exactly by the query
// of that step.
#pragma once

#include "export/simulate/cache_method.h"

namespace oscar {

struct KiviOptions {
  int bits = 2;                    // 0: not quantized
  int64_t quant_group_size = 128;  // G: tokens in a key channel, channels in a token's value
  int64_t residual = 128;          // R: tokens, a multiple of G
  int64_t sink = 0;                // first tokens, exact
};

// Blocks of R keys are counted from the end of the sinks. A query in a cache of `length` tokens,
// including its own, reads exactly the keys from sink + R floor((length - 1 - sink) / R) on and the
// last R + 1 values. This holds wherever prefill ended, because a query's own token is appended
// before attention and quantization follows it. `channels` quantizes the keys: it maps channels
// [blocks, num_kv_heads, dim, R tokens] to what is read back. Empty: KiviChannels.
LayerCache KiviCache(const KiviOptions& options,
                     std::function<at::Tensor(const at::Tensor&)> channels = {});
at::Tensor KiviChannels(const at::Tensor& channels, const KiviOptions& options);
CacheCost KiviCost(const KiviOptions& options, const std::vector<LayerSpec>& layers,
                   int64_t tokens);

}  // namespace oscar
