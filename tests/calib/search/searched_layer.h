// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A layer whose best transform is known, and functions that run the automatic choice on it.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <string>

#include "calib/run/process_layer.h"
#include "calib/search/choice_search.h"
#include "calib/search/clip_grid.h"
#include "tests/calib/observe/golden_layer.h"

namespace oscar::searched {

inline constexpr int64_t kDim = 32;

// Returns a layer with rope. If `outliers`, three RoPE pairs of its keys are multiplied by
// `factor`, and those of its queries are divided by it.
inline GoldenLayer Layer(bool outliers, double factor = 16) {
  GoldenLayer layer = RandomLayer(4, 2, kDim, 16, {320, 320, 320, 320}, {}, 7);
  layer.spec.attention.rope.rotary_dim = kDim;
  if (!outliers) return layer;
  at::Tensor scale = at::ones({kDim}, at::kDouble);
  for (const int64_t pair : {1, 6, 11}) {
    for (const int64_t channel : {pair, pair + kDim / 2}) scale[channel] = factor;
  }
  for (at::Tensor& k : layer.k) k = k.mul(scale);
  for (at::Tensor& q : layer.q) q = q.div(scale);
  return layer;
}

inline CalibrationOptions Options(Consumer consumer = Consumer::kAny) {
  CalibrationOptions options;
  options.sink_tokens = 4;
  options.recent_tokens = 16;
  options.automatic.enabled = true;
  options.automatic.consumer = consumer;
  options.automatic.fold = true;
  return options;
}

// The last sequence is held out.
inline const HeldOutSplit kSplit = {HeldOutKind::kDocuments, {320, 320, 320, 0}, 320};

inline AutoChoice Searched(const ObservedLayer& observed, const LayerSpec& spec,
                           const CalibrationOptions& options) {
  PhaseTimes times;
  return SearchChoices(observed, spec, options.search(), {}, times).at(0);
}

inline LayerResult Processed(const GoldenLayer& layer, const CalibrationOptions& options) {
  PhaseTimes times;
  return ProcessLayer(Observe(layer, kSplit, 64), layer.spec, kSplit, options, times);
}

// Applies the rule of every search to scores: a later candidate replaces the chosen one if it is
// better by kWorthwhile. Returns the index of the chosen one.
inline size_t ByTheRule(size_t count, const std::function<double(size_t)>& score) {
  size_t chosen = 0;
  for (size_t i = 1; i < count; ++i) {
    if (score(i) < (1 - kWorthwhile) * score(chosen)) chosen = i;
  }
  return chosen;
}

inline double KlOf(const LayerResult& result, const std::string& arm) {
  return std::ranges::find(result.arms, arm, &ArmResult::name)->kl_mean;
}

}  // namespace oscar::searched
