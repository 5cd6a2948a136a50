// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures what ways to store a cache cost in the prediction of the next token, by running the
// model with them. Many trials run at once: each is exact up to the layer where it begins, and all
// share that part. A layer's weights are read once for all trials.
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

// How a layer's sides are stored in a trial: with the bits and clip ratios of an option (null:
// exact), or unrotated in cache types with calibrated scales.
struct TrialSides {
  const SideOption* k = nullptr;
  const SideOption* v = nullptr;
  LayerTypes types = {};

  bool exact() const { return k == nullptr && v == nullptr && types == LayerTypes(); }
  auto operator<=>(const TrialSides&) const = default;
};

// Attention errors in a trial's first layer, over sampled rows that see many tokens.
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
  CountedQueries counted = {};  // costs are measured only for the next tokens of these
  CacheWindows windows;
  // Returns the choice of a layer with its matrices. Layers come in order.
  std::function<AutoChoice(size_t layer_index)> choice;
  std::function<LargestMagnitudes(size_t layer_index)> largest = {};  // for trials with types
  std::function<void(size_t layers_done)> on_layer = {};
  std::function<bool()> stop_requested = {};
  bool prefetch = true;  // as in LoopOptions
};

// Returns the cost of each trial, over the tokens whose queries see quantized tokens. Throws
// Interrupted if a stop is requested, and the errors of reading the model.
std::vector<NextTokenCost> MeasureNextToken(const NextTokenRun& run,
                                            std::span<const CacheTrial> trials);

// The options to measure: all, or those whose bits (mean over heads) are a whole number.
enum class MeasuredWidths { kAll, kWhole };
// Returns the number of these layers' options that are measured.
size_t NumMeasured(const std::vector<AutoChoice>& choices, MeasuredWidths widths);

// Sets SideOption::next_token_kl of `choices` (the layers' choices without matrices): the prices of
// all options of all layers, one side at a time. Options that are not measured are interpolated,
// log-linear in bits. For latent attention both sides are priced together.
void PriceOptions(const NextTokenRun& run, MeasuredWidths widths, std::vector<AutoChoice>& choices);

// Returns the cost of whole caches, given planned choices for both sides of every layer.
std::vector<NextTokenCost> MeasureWhole(const NextTokenRun& run,
                                        std::span<const std::vector<AutoChoice>> planned);

// Prices each side of every layer separately in each of the types: sets `k` and `v` of layers.
void PriceTypes(const NextTokenRun& run, std::span<const CacheType> types,
                std::vector<TypedLayer>& layers);

// Returns the cost of whole caches of types, [plans][layers].
std::vector<NextTokenCost> MeasureTypes(const NextTokenRun& run,
                                        std::span<const std::vector<LayerTypes>> plans);

}  // namespace oscar
