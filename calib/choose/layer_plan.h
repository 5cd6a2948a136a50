// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides what depends on all layers together: bits by marginal damage under a budget of stored
// bits, one clip ratio if the consumer takes only one, and windows. Windows change only on request,
// but scores with larger windows are computed in any case.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calib/choose/choice.h"
#include "calib/consumers.h"

namespace oscar {

// Windows are counted as bits per element, averaged over sequences of this many tokens.
inline constexpr int64_t kPriceTokens = 32768;

// One layer's elements in the cache: num_kv_heads * dim per token, and their scales and zeros.
struct LayerElements {
  int64_t k = 0, v = 0;
  double metadata_bits = 0;  // per token
  double oscar_bits = 0;     // bits of the float32 scales and zeros in OSCAR's cache
  int64_t kept = 0;          // elements that stay in 16 bits
};

LayerElements ElementsOf(int64_t num_kv_heads, int64_t head_dim, int64_t v_head_dim,
                         const GroupFormat& groups);

// Returns the elements of a layer with latent attention: one row of `rank` values, stored once, and
// the rope part, which is not quantized.
LayerElements LatentElementsOf(int64_t rank, int64_t position_dim, const GroupFormat& groups);

// Returns the bits per element of 2-bit codes with their metadata. The option --bits must be at
// least this, or exactly 2.
double LeastStoredBits(const std::vector<LayerElements>& elements);

// Returns the bits per element that options.bits allows.
double StoredBits(const AutoOptions& options, const std::vector<LayerElements>& elements);

// Returns the bits per quantized element that windows add to the two bits of a code.
double WindowBits(const CacheWindows& windows);

struct AutoPlan {
  CacheWindows windows;
  double bits = 0;                    // mean bits of codes per element
  double stored_bits = 0;             // with metadata; within the budget
  std::vector<double> window_scores;  // means over layers, in the order of AutoChoice::windows
};

// Decides for all layers, and writes k_bits, v_bits and clip ratios into their choices. Bits go
// where they lower the summed damage most (bit_allocation.h); options.price is the measure of
// damage.
AutoPlan PlanLayers(const AutoOptions& options, const std::vector<LayerElements>& elements,
                    std::vector<AutoChoice>& choices);

}  // namespace oscar
