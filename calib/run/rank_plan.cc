// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/rank_plan.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "calib/observe/statistics_observer.h"
#include "capture/model/run/memory_plan.h"

namespace oscar {
namespace {

// Returns the bytes of weights read from disk, with or without experts.
uint64_t WeightBytes(const CalibrationInput& whole, bool with_experts) {
  const ModelSource& model = *whole.model();
  ModelSpec spec = model.loop().spec();
  if (!with_experts) {
    for (auto* layers : {&spec.layers, &spec.uncached})
      for (LayerSpec& layer : *layers) layer.experts.reset();
  }
  const auto& lengths = whole.lengths();
  return PlanMemory(spec, model.loop().checkpoint(), whole.num_tokens(),
                    *std::ranges::max_element(lengths), whole.dtype, whole.device.type(),
                    model.loop().options())
      .weights_read;
}

// Returns the share of the experts' work that ranks divide: routed experts, not shared ones.
double RoutedPart(const ModelSpec& spec) {
  double routed = 0, shared = 0;
  for (const LayerSpec* layer : AllLayers(spec)) {
    if (!layer->experts) continue;
    routed += static_cast<double>(layer->experts->num_experts * layer->experts->intermediate_size);
    shared += static_cast<double>(layer->experts->shared_size);
  }
  return routed > 0 ? routed / (routed + shared) : 0;
}

// Returns the bytes that all ranks would send if each rank also sent to itself: keys and values,
// sums, inputs and outputs of experts, and hidden states at commits.
double BytesToExchange(const CalibrationInput& whole, int ranks, double seconds) {
  const ModelSpec& spec = whole.model()->loop().spec();
  const auto tokens = static_cast<double>(whole.num_tokens());
  const auto element = static_cast<double>(c10::elementSize(whole.dtype));
  const double documents = static_cast<double>(whole.lengths().size()) / ranks;
  const double nodes = ranks * (2 * std::log2(documents + 1) + 1);  // nodes in the trees of sums
  double bytes = 0;
  for (const LayerSpec& layer : whole.source->layers()) {
    const AttentionSpec& a = layer.attention;
    const SumsLayout sums{a.num_kv_heads, a.head_dim, a.v_head_dim};
    bytes += tokens * static_cast<double>(a.num_kv_heads * (a.head_dim + a.v_head_dim)) * element +
             nodes * 8 * static_cast<double>(sums.of_all());
  }
  const auto hidden = static_cast<double>(spec.hidden_size) * element;
  for (const LayerSpec* layer : AllLayers(spec)) {
    if (layer->experts)
      bytes += tokens * static_cast<double>(layer->experts->router.top_k) * (2 * hidden + 4);
  }
  const auto layers = static_cast<double>(spec.layers.size());
  const double commits =
      whole.device.is_cpu() ? layers / ranks : seconds / whole.run.commit_seconds;
  return bytes + std::min(layers, commits) * tokens * hidden;
}

}  // namespace

RankPlan PlanRanks(const CalibrationInput& largest, const CalibrationInput& whole,
                   const CalibrationPlan& one, int nodes) {
  const std::vector<RankShare>& shares = largest.ranks.shares;
  const auto ranks = static_cast<double>(shares.size());
  RankPlan plan{.ranks = static_cast<int>(shares.size()), .nodes = nodes};
  double all = 0, most = 0;
  for (const RankShare& share : shares) {
    plan.most_tokens = std::max(plan.most_tokens, share.num_tokens);
    all += share.work;
    most = std::max(most, share.work);
  }
  const uint64_t weights = WeightBytes(whole, true), dense = WeightBytes(whole, false);
  const double routed =
      static_cast<double>(weights - dense) * RoutedPart(whole.model()->loop().spec());
  plan.read_per_node = weights - static_cast<uint64_t>(routed * (nodes - 1) / nodes);
  const CalibrationPlan of_largest = PlanCalibration(largest);
  plan.peak_device = of_largest.peak_device;
  plan.peak_host = of_largest.peak_host;

  const auto layers = static_cast<double>(whole.source->layers().size());
  const double arithmetic =
      (one.model_seconds + one.statistics_seconds) * most / all +
      (one.fit_seconds + one.auto_seconds) * std::ceil(layers / ranks) / layers;
  const double exchanged = BytesToExchange(whole, plan.ranks, arithmetic) * (ranks - 1) / ranks;
  const double between = ranks > 1 ? (ranks - ranks / nodes) / (ranks - 1) : 0;
  plan.exchanged = static_cast<uint64_t>(exchanged);
  plan.network = static_cast<uint64_t>(exchanged * between);
  plan.seconds = arithmetic + exchanged * (1 - between) / ranks / kBytesPerSecondInside +
                 exchanged * between / nodes / kBytesPerSecondBetween;
  plan.efficiency = one.seconds / (ranks * plan.seconds);
  return plan;
}

}  // namespace oscar
