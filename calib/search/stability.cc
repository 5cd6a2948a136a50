// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/search/stability.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <span>
#include <utility>

#include "calib/moments/position_spread.h"
#include "linalg/base/parallel_for.h"

namespace oscar {
namespace {

// Returns the mean score over all sampled rows, at 2 bits.
double OfAllRows(const HeadScores& scores) { return (Mean(scores.score) + Mean(scores.check)) / 2; }

// Returns the same for a side that the search has already scored.
double Known(const SideOption& option) { return (option.score + option.check) / 2; }

using ScoreSides = std::function<std::vector<HeadScores>(AutoScorer::Sides, AutoScorer::Trials)>;

// Returns the scores of sides at one clip ratio; the largest number for a side that was not fitted.
std::vector<double> Scores(const std::vector<CacheSide>& sides, const std::vector<double>& clip,
                           const ScoreSides& score) {
  std::vector<const CacheSide*> fitted;
  std::vector<AutoScorer::Trial> trials;
  for (const CacheSide& side : sides) {
    if (side.num_rotations == 0) continue;
    trials.push_back({fitted.size(), clip});
    fitted.push_back(&side);
  }
  std::vector<HeadScores> of_fitted;
  if (!fitted.empty()) of_fitted = score(fitted, trials);
  std::vector<double> scores;
  for (size_t i = 0, j = 0; i < sides.size(); ++i) {
    scores.push_back(sides[i].num_rotations == 0 ? std::numeric_limits<double>::max()
                                                 : OfAllRows(of_fitted[j++]));
  }
  return scores;
}

// Returns how much worse the worse half is than all tokens.
double Cost(std::span<const double> halves, double all) {
  return std::clamp(std::ranges::max(halves) / all - 1, 0.0, kNoFitCost);
}

}  // namespace

HalfFits::HalfFits(const ObservedLayer& observed, const AutoChoice& choice) : observed_(observed) {
  const LayerMoments& first = observed.first_half;
  if (first.tokens == 0) return;
  second_ = OtherHalf(observed.fit, first);
  if (second_.tokens == 0) return;
  const LayerMoments& second = second_;
  for (const LayerMoments* half : {&first, &second}) {
    keys_.push_back(std::async(
        std::launch::async,
        [half, recipe = choice.keys, length = choice.text_length, context = choice.context] {
          return FitKeys(SpreadOverPositions(*half, length, context), {recipe}).at(0);
        }));
  }
}

Stability HalfFits::Measure(const AutoChoice& choice, const AutoScorer& scorer) {
  if (observed_.first_half.tokens == 0) return {};
  Stability stability = CompareHalves(observed_.first_half, second_);
  if (second_.tokens == 0) return stability;
  ValueRecipe recipe = choice.values;
  recipe.target = ValueTarget::kAttentionOutput;
  std::vector<const LayerMoments*> tokens = {&observed_.first_half, &second_};
  if (recipe != choice.values) tokens.push_back(&observed_.fit);
  std::future<std::vector<CacheSide>> fitting = std::async(std::launch::async, [&] {
    std::vector<CacheSide> sides(tokens.size());
    ParallelFor(std::ssize(tokens), [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      sides[at] = FitValues(*tokens[at], {recipe}).at(0);
    });
    return sides;
  });
  const SideOption &k = choice.k_options.front(), &v = choice.v_options.front();
  const std::vector<double> of_keys =
      Scores({keys_[0].get(), keys_[1].get()}, k.clip, [&](auto sides, auto trials) {
        return scorer.ScoreKeys(sides, trials, choice.Format(2, /*of_keys=*/true));
      });
  const std::vector<double> of_values = Scores(fitting.get(), v.clip, [&](auto sides, auto trials) {
    return scorer.ScoreValues(sides, trials, choice.Format(2, /*of_keys=*/false));
  });
  stability.k_cost = Cost(of_keys, Known(k));
  stability.v_cost =
      Cost(std::span(of_values).first(2), of_values.size() > 2 ? of_values[2] : Known(v));
  stability.unstable =
      stability.few_tokens || stability.k_cost > kStableCost || stability.v_cost > kStableCost;
  return stability;
}

}  // namespace oscar
