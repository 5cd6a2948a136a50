// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Refines the matrices of an automatic choice through attention (rotation_refinement.h). Every
// other text stands further back in a longer context (position_spread.h). Heads keep what they
// learned if texts set aside here confirm it; held-out rows decide for the layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "calib/choose/choice.h"
#include "capture/model/spec/model_spec.h"
#include "linalg/cache_windows.h"  // CacheWindows

namespace oscar {

// The last queries of a text that refinement compares.
inline constexpr int64_t kRefinedQueries = 64;
// How many queries of each text are kept for it.
inline int64_t QueriesToRefine(const AutoOptions& options) {
  return options.enabled && options.refine > 0 ? kRefinedQueries : 0;
}

// Texts of one layer.
struct RefinedTexts {
  std::vector<at::Tensor> keys, values;  // [tokens, num_kv_heads, dim]
  // [last queries] float32, 0 where a query does not count, or undefined where all do.
  std::vector<at::Tensor> counted = {};
  std::vector<at::Tensor> last_queries;  // [min(kRefinedQueries, tokens), num_q_heads, d]
};

// Takes `steps` of gradient descent from choice.k and choice.v, which then have a rotation per KV
// head. Factors of error feedback are fitted to `moments` again.
void RefineChoice(const RefinedTexts& texts, const AttentionSpec& attention,
                  const CacheWindows& windows, int64_t steps, const LayerMoments& moments,
                  AutoChoice& choice);

}  // namespace oscar
