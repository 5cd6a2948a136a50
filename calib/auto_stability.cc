// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See auto_stability.h.
#include "calib/auto_stability.h"

#include <algorithm>
#include <future>
#include <limits>

#include "calib/position_spread.h"

namespace oscar {
namespace {

struct Scores {
  double k = 0, v = 0;  // in two bits, on all sampled rows
};

double OfAllRows(const HeadScores& scores) { return (Mean(scores.score) + Mean(scores.check)) / 2; }

}  // namespace

Stability MeasureStability(const ObservedLayer& observed, const RopeSpec& rope,
                           const FoldRules& fold, const AutoChoice& choice,
                           const AutoScorer& scorer) {
  const LayerMoments& first = observed.first_half;
  if (first.tokens == 0) return {};
  const LayerMoments second = OtherHalf(observed.fit, first);
  // On host threads, beside the scores.
  std::future<Stability> comparing =
      std::async(std::launch::async, [&] { return CompareHalves(first, second); });
  if (second.tokens == 0) return comparing.get();
  ValueRecipe values = choice.values;
  values.target = ValueTarget::kAttentionOutput;
  const auto score = [&](const LayerMoments& tokens) {
    const LayerMoments spread =
        SpreadOverPositions(tokens, rope, choice.text_length, choice.context);
    const AutoSide k = FitKeys(spread, {choice.keys}, fold).at(0);
    const AutoSide v = FitValues(spread, {values}).at(0);
    const auto two_bits = [&](const std::vector<SideOption>& options) {
      return AutoScorer::Quantizer{2, options.front().clip, choice.quant_group_size};
    };
    Scores scores{std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
    if (k.num_rotations > 0)
      scores.k = OfAllRows(scorer.ScoreKeys(scorer.RotateKeys(k), two_bits(choice.k_options)));
    if (v.num_rotations > 0)
      scores.v = OfAllRows(scorer.ScoreValues(scorer.RotateValues(v), two_bits(choice.v_options)));
    return scores;
  };
  // What the search has scored is not scored again.
  const auto known = [](const SideOption& option) { return (option.score + option.check) / 2; };
  Scores all{known(choice.k_options.front()), known(choice.v_options.front())};
  if (values != choice.values) all.v = score(observed.fit).v;
  Stability costs;
  for (const LayerMoments* half : {&first, &second}) {
    const Scores of_half = score(*half);
    costs.k_cost = std::clamp(of_half.k / all.k - 1, costs.k_cost, kNoFitCost);
    costs.v_cost = std::clamp(of_half.v / all.v - 1, costs.v_cost, kNoFitCost);
  }
  Stability stability = comparing.get();
  stability.k_cost = costs.k_cost;
  stability.v_cost = costs.v_cost;
  stability.unstable =
      stability.few_tokens || stability.k_cost > kStableCost || stability.v_cost > kStableCost;
  return stability;
}

}  // namespace oscar
