// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What all layers share: bits by marginal KL under the budget, one clip ratio where a consumer
// takes no more, windows. Trap: windows stay as they are unless asked for; larger ones are priced.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calib/auto_choice.h"
#include "calib/auto_options.h"

namespace oscar {

// Bits per element are a mean over sequences of this many tokens where windows have a price.
inline constexpr int64_t kPriceTokens = 32768;

// A layer's part of the cache: num_kv_heads * dim elements per token.
struct LayerElements {
  int64_t k = 0, v = 0;
};

// Bits per element that windows add to what is quantized in about two bits.
double WindowBits(const CacheWindows& windows);

struct AutoPlan {
  CacheWindows windows;
  double bits = 0;                    // spent, of the budget
  std::vector<double> window_scores;  // mean over layers, as AutoChoice::windows
};

// Decides for all layers and writes it into their choices: k_bits, v_bits, the options' clip. Keys
// first, to 4 bits, where the next bit lowers the summed KL most per element; then values, by their
// output error; then both to 8.
AutoPlan PlanLayers(const AutoOptions& options, const std::vector<LayerElements>& elements,
                    std::vector<AutoChoice>& choices);

}  // namespace oscar
