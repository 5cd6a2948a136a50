// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures how much a way to store the cache changes the next-token distribution, by running the
// model with it. A trial is one such way. It is exact up to the layer where it begins, and this
// part is run once for all trials. A layer's weights are also read once for all trials.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "calib/choose/cache_types.h"
#include "calib/choose/choice.h"
#include "capture/model/run/layer_loop.h"
#include "export/simulate/typed_cache.h"  // LargestMagnitudes
#include "linalg/cache_windows.h"

namespace oscar {

// How a trial stores a layer. Either each side has the bits and clip ratios of an option (null:
// exact), or both sides are unrotated and stored in cache types with calibrated scales.
struct TrialSides {
  const SideOption* k = nullptr;
  const SideOption* v = nullptr;
  LayerTypes types = {};

  bool exact() const { return k == nullptr && v == nullptr && types == LayerTypes(); }
  auto operator<=>(const TrialSides&) const = default;
};

// Attention errors in a trial's first layer, over sampled rows of the second half of each sequence.
struct AttentionCost {
  double kl = 0;            // nats
  double output_error = 0;  // relative
};

struct CacheTrial {
  size_t first_layer = 0;  // earlier layers are exact
  std::function<TrialSides(size_t layer_index)> sides;
  AttentionCost* attention = nullptr;  // measured if not null
};

struct NextTokenRun {
  const Checkpoint& checkpoint;
  const ModelSpec& spec;
  at::Device device;
  at::ScalarType dtype;
  std::vector<std::vector<int32_t>> sequences;
  CountedQueries counted = {};  // costs are means over the tokens that these queries predict
  CacheWindows windows;
  // Returns a layer's choice, including its matrices. It is called for layers in order.
  std::function<AutoChoice(size_t layer_index)> choice;
  std::function<LargestMagnitudes(size_t layer_index)> largest = {};  // for trials with types
  std::function<void(size_t layers_done)> on_layer = {};
  std::function<bool()> stop_requested = {};
  bool prefetch = true;  // as in LoopOptions
};

// Returns the next-token cost of each trial, over the tokens whose queries see quantized tokens.
// Throws Interrupted if a stop is requested. Errors of reading the model are passed on.
std::vector<NextTokenCost> MeasureNextToken(const NextTokenRun& run,
                                            std::span<const CacheTrial> trials);

// The options that are measured: all, or those with a whole number of bits (mean over heads).
enum class MeasuredWidths { kAll, kWhole };
// Returns how many of these layers' options are measured.
size_t NumMeasured(const std::vector<AutoChoice>& choices, MeasuredWidths widths);

// Sets SideOption::next_token_kl for all options of all layers. It is the KL if only one side of
// one layer is stored with the option and everything else is exact; for latent attention, both
// sides. `choices` need no matrices. Options that are not measured are interpolated log-linearly in
// bits.
void PriceOptions(const NextTokenRun& run, MeasuredWidths widths, std::vector<AutoChoice>& choices);

// Returns the cost of each plan, a whole cache with the given choice for every layer.
std::vector<NextTokenCost> MeasureWhole(const NextTokenRun& run,
                                        std::span<const std::vector<AutoChoice>> planned);

// Measures each side of each layer in each of the types, with everything else exact. Sets `k` and
// `v` of the layers to the costs.
void PriceTypes(const NextTokenRun& run, std::span<const CacheType> types,
                std::vector<TypedLayer>& layers);

// Returns the cost of each plan, a whole cache with the given types for every layer.
std::vector<NextTokenCost> MeasureTypes(const NextTokenRun& run,
                                        std::span<const std::vector<LayerTypes>> plans);

}  // namespace oscar
