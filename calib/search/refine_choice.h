// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Refines the matrices of an automatic choice by gradient descent through attention
// (rotation_refinement.h). Every other text is shifted to later positions (position_spread.h). A
// head keeps its refinement if it is better on texts that are set aside here. Later, held-out rows
// decide whether the layer keeps it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "calib/choose/choice.h"
#include "capture/model/spec/model_spec.h"
#include "linalg/cache_windows.h"  // CacheWindows

namespace oscar {

// The number of last queries of a text that refinement compares.
inline constexpr int64_t kRefinedQueries = 64;
// Returns how many queries of each text refinement needs.
inline int64_t QueriesToRefine(const AutoOptions& options) {
  return options.enabled && options.refine > 0 ? kRefinedQueries : 0;
}

// The texts of one layer.
struct RefinedTexts {
  std::vector<at::Tensor> keys, values;  // [tokens, num_kv_heads, dim]
  // [last queries] float32, 0 if a query does not count; undefined if all count.
  std::vector<at::Tensor> counted = {};
  std::vector<at::Tensor> last_queries;  // [min(kRefinedQueries, tokens), num_q_heads, d]
};

// Takes `steps` steps of gradient descent from choice.k and choice.v, which must have a rotation
// per KV head, and stores the result there. Factors for error feedback are then refitted to
// `moments`.
void RefineChoice(const RefinedTexts& texts, const AttentionSpec& attention,
                  const CacheWindows& windows, int64_t steps, const LayerMoments& moments,
                  AutoChoice& choice);

}  // namespace oscar
