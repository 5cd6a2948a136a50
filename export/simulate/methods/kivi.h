// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// KIVI (arXiv 2402.02750): keys per channel over consecutive tokens, values per token over
// neighbouring channels, family A2 with float16 scale and minimum, and a residual of exact tokens.
// Keys leave the residual all at once, values one by one. The query of the step that quantizes
// still reads these rows exactly.
#pragma once

#include "export/simulate/cache_method.h"

namespace oscar {

struct KiviOptions {
  int bits = 2;                    // 0: not quantized
  int64_t quant_group_size = 128;  // G: tokens in a key channel, channels in a token's value
  int64_t residual = 128;          // R: tokens, a multiple of G
  int64_t sink = 0;                // first tokens, exact
};

// Blocks of R keys are counted from the end of the sinks. Wherever prefill ended, a query at
// `length` reads exactly the keys from sink + R floor((length - 1 - sink) / R) on and the last R +
// 1 values, because its own token is appended before and quantization follows attention. `channels`
// maps key channels [blocks, num_kv_heads, dim, R tokens] to what is read back; empty:
// KiviChannels.
LayerCache KiviCache(const KiviOptions& options,
                     std::function<at::Tensor(const at::Tensor&)> channels = {});
at::Tensor KiviChannels(const at::Tensor& channels, const KiviOptions& options);
CacheCost KiviCost(const KiviOptions& options, const std::vector<LayerSpec>& layers,
                   int64_t tokens);

}  // namespace oscar
