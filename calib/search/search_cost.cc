// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/search/search_cost.h"

#include <algorithm>

#include "calib/choose/choice_points.h"
#include "calib/search/refine_choice.h"
#include "calib/search/scorer.h"

namespace oscar {
namespace {

// Numbers of recipes that are fitted and rotated, and of scores, in choice_search.cc for all
// consumers together. Most belong to `any`, the consumer without restrictions.
constexpr int64_t kKeyRecipes = 32, kKeyScores = 90, kValueRecipes = 11, kValueScores = 44;
constexpr int64_t kBitScores = 2,
                  kHalves = 3;  // per side: 3 and 4 bits; all tokens, and two halves

// Numbers of arrays as large as one side: for a sequence's keys and values; for a candidate's rows
// and sorted magnitudes; for temporaries of rotating, sorting, quantizing and comparing.
constexpr int64_t kKeptRows = 3, kRotatedRows = 2, kQuantizedRows = 8;
constexpr int64_t kLatentQueries = 6;  // arrays the size of the queries
struct DeviceCost {
  // Float32 arrays the size of the scores: kept for a sequence, and made by a comparison.
  int64_t kept_scores, compared_scores;
  // Passes over an array for one score; a sort counts as several.
  int64_t score_passes, row_passes, sort_passes;
};
DeviceCost CostOn(at::DeviceType device) {
  // The kernels of a CPU (calib/cache/host_kernels.h) need no arrays between their steps.
  return device == at::kCPU ? DeviceCost{5, 3, 6, 8, 12} : DeviceCost{5, 9, 14, 14, 30};
}
// Float32 arrays that the autograd graph of one refined text holds, each the size of its scores.
constexpr int64_t kGraphScores = 16;
constexpr double kEigenFlops = 12;  // flops per dim^3 for one eigenbasis

struct Sampled {
  int64_t rows = 0, tokens = 0;
};

// Picks sequences like AutoScorer: a limited number of those with held-out rows, the longest first.
std::vector<Sampled> Sequences(const AttentionSpec& a, const std::vector<int64_t>& lengths,
                               const HeldOutSplit& split, int64_t error_rows) {
  std::vector<Sampled> sampled;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t rows =
        std::min(split.NumKeptRows(i, lengths[i], error_rows), AutoScorer::RowsOf(a));
    if (rows >= 2) sampled.push_back({rows, std::min(lengths[i], AutoScorer::kTokens)});
  }
  std::ranges::stable_sort(sampled, std::ranges::greater(), &Sampled::tokens);
  if (std::ssize(sampled) > AutoScorer::kSequences)
    sampled.resize(static_cast<size_t>(AutoScorer::kSequences));
  // A single sequence is used at two offsets.
  if (sampled.size() == 1) {
    sampled[0].rows = (sampled[0].rows + 1) / 2;
    sampled.push_back(sampled[0]);
  }
  return sampled;
}

uint64_t RefinementBytes(const AttentionSpec& a, const std::vector<int64_t>& lengths) {
  int64_t texts = 0, graph = 0;
  for (const int64_t tokens : lengths) {
    texts += tokens * (a.num_q_heads * a.head_dim + a.num_kv_heads * (a.head_dim + a.v_head_dim));
    graph = std::max(graph, kGraphScores * a.num_q_heads * kRefinedQueries * tokens +
                                kQuantizedRows * a.num_kv_heads * tokens * a.head_dim);
  }
  return static_cast<uint64_t>(4 * (texts + graph));
}

}  // namespace

ChoiceArms ChoiceArmsOf(const AutoOptions& options) {
  if (!options.enabled) return {};
  const ConsumerRules& rules = RulesOf(options.consumer);
  const auto ratios = std::ssize(SharedRatios());
  ChoiceArms arms{1, 1};
  if (rules.clip == ClipScope::kSide) arms = {ratios, ratios * ratios};
  if (rules.clip == ClipScope::kModel) arms = {ratios, ratios};
  if (options.shares_bits()) {
    const int64_t bits = (options.wide_codes() ? 4 : 3) + (options.head_bits ? 2 : 0);
    arms = {bits, bits * bits};
  }
  if (options.refine > 0) arms = {2 * arms.keys, 2 * arms.points};
  return arms;
}

AutoCost CostOfChoice(const LayerSpec& layer, const std::vector<int64_t>& sequence_lengths,
                      const HeldOutSplit& split, const AutoOptions& options, int64_t error_rows,
                      at::DeviceType device) {
  AutoCost cost;
  const DeviceCost on = CostOn(device);
  if (!options.enabled || split.kind == HeldOutKind::kNone) return cost;
  const AttentionSpec& a = layer.attention;
  const int64_t q = a.num_q_heads, kv = a.num_kv_heads, d = a.head_dim, dv = a.v_head_dim;
  const int64_t dim = std::max(d, dv);
  const int64_t key_scores = kKeyScores + kBitScores + kHalves,
                value_scores = kValueScores + kBitScores + kHalves;
  const std::vector<Sampled> sampled = Sequences(a, sequence_lengths, split, error_rows);
  Sampled longest;
  for (const auto& [rows, tokens] : sampled) {
    longest = {std::max(longest.rows, rows), std::max(longest.tokens, tokens)};
    const int64_t scores = q * rows * tokens, keys = kv * tokens * d, values = kv * tokens * dv;
    cost.multiply_adds += static_cast<double>(
        kKeyRecipes * (keys * d + q * rows * d * d) + key_scores * 2 * scores * d +
        (kValueRecipes + value_scores) * values * dv + value_scores * scores * dv);
    cost.elements += static_cast<double>(
        key_scores * (on.score_passes * scores + on.row_passes * keys) +
        value_scores * (scores + on.row_passes * values) + on.sort_passes * (kKeyRecipes * keys) +
        on.sort_passes * (kValueRecipes * values));
  }
  if (sampled.empty()) return cost;
  // Every sequence is padded to the longest. The scorer processes several sequences, sides and clip
  // ratios at a time, and so does this count.
  const int64_t count = std::ssize(sampled), at_once = AutoScorer::ValuesAtOnce(device);
  const int64_t scores = q * longest.rows * longest.tokens, side = kv * longest.tokens * dim;
  const auto together = [&](int64_t values, int64_t most) {
    return std::clamp<int64_t>(at_once / values, 1, most);
  };
  const int64_t sides = count * together(count * side, kKeyRecipes);
  // Latent attention also needs the logits of the rope part and queries in latent space, which are
  // wider than a head.
  const int64_t latents = a.latent ? scores + kLatentQueries * q * longest.rows * d : 0;
  const int64_t kept =
      count * (on.kept_scores * scores + kKeptRows * side + latents) + kRotatedRows * sides * side;
  const int64_t compared = together(std::max(scores, side), count * kKeyRecipes) *
                           (on.compared_scores * scores + kQuantizedRows * side);
  const int64_t rotated = together(side, sides) * kQuantizedRows * side;
  cost.bytes = static_cast<uint64_t>(4 * (kept + std::max(compared, rotated)));
  if (options.refine > 0) cost.bytes = std::max(cost.bytes, RefinementBytes(a, sequence_lengths));
  const int64_t recipes = kKeyRecipes + kValueRecipes;
  // Two matrices are kept per recipe. Moments are kept of all tokens, spread over positions, and of
  // each half. Latent attention adds joint moments for both value targets and for a half.
  const int64_t moments = a.latent ? 7 : 4;
  cost.host_bytes = static_cast<uint64_t>(8 * kv * dim * dim * (2 * recipes + moments * 5));
  cost.eigen_flops = kEigenFlops * static_cast<double>((recipes + 2 * kHalves) * kv) *
                     static_cast<double>(dim * dim * dim);
  return cost;
}

}  // namespace oscar
