// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/search/latent_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calib/choose/recipe_fit.h"
#include "calib/fit/fit.h"
#include "calib/search/choice_search.h"
#include "calib/search/clip_grid.h"
#include "calib/search/scorer.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr std::array<double, 3> kCoarseLatents = {0.88, 0.92, 0.96};
constexpr std::array<double, 1> kUnclippedLatents = {1.0};
constexpr size_t kClippedLatents = 3;  // recipes whose clip ratios are searched

struct LatentPoint {
  double ratio = 0;
  AutoScorer::LatentScores scores;
  double damage = 0, damage_check = 0;  // DamageOf on choosing and on judging rows
};
using LatentCurve = std::vector<LatentPoint>;  // ascending ratios

// Returns the row's damage as a key plus its damage as a value, each relative to Hadamard's damage.
// The damage as a key is the square root of the KL, because a KL grows with the square of an error.
double DamageOf(const AutoScorer::LatentScores& scores, const AutoScorer::LatentScores& unit,
                std::vector<double> HeadScores::*rows) {
  const auto ratio = [&](HeadScores AutoScorer::LatentScores::*of) {
    const double whole = Mean(unit.*of.*rows);
    return whole > 0 ? Mean(scores.*of.*rows) / whole : 0;
  };
  return std::sqrt(ratio(&AutoScorer::LatentScores::kl)) + ratio(&AutoScorer::LatentScores::output);
}

const LatentPoint& BestLatent(const LatentCurve& points) {
  return *std::ranges::min_element(points, {}, &LatentPoint::damage);
}

struct LatentCandidate {
  LatentRecipe recipe;
  CacheSide side;
  LatentCurve points;  // scores at 2 bits
  const LatentPoint& best() const { return BestLatent(points); }
};

// Returns one side of an option at its best ratio.
SideOption LatentOption(int bits, const LatentCurve& points,
                        HeadScores AutoScorer::LatentScores::*scores) {
  SideOption option{.bits = static_cast<double>(bits), .clip = {BestLatent(points).ratio}};
  const HeadScores& best = BestLatent(points).scores.*scores;
  option.score = Mean(best.score);
  option.check = Mean(best.check);
  option.head_score = best.score;
  option.head_check = best.check;
  for (const LatentPoint& point : points) {
    option.ratios.push_back(point.ratio);
    option.curve.push_back(Mean((point.scores.*scores).score));
    option.check_curve.push_back(Mean((point.scores.*scores).check));
  }
  return option;
}

class LatentSearch {
 public:
  // Keeps references to all arguments.
  LatentSearch(const ObservedLayer& observed, const LayerSpec& spec, const AutoOptions& automatic,
               const SearchOptions& options, const AutoScorer& scorer, PhaseTimes& times)
      : observed_(observed),
        options_(automatic),
        composition_(options.composition),
        rules_(RulesOf(automatic.consumer)),
        times_(times),
        windows_(PricedWindows(options.windows)),
        scorer_(scorer) {
    OSCAR_CHECK_EQ(spec.attention.num_kv_heads, 1);
    choice_.made = true;
    choice_.position_dim = spec.attention.latent->rope_dim;
    choice_.SetWriter(automatic, options.quant_group_size, spec.attention.latent->rank,
                      spec.attention.latent->rank);
    for (const at::Tensor& keys : observed.keys)
      choice_.text_length = std::max(choice_.text_length, keys.size(0));
    choice_.context = choice_.text_length;  // holds at any position
    choice_.rows = scorer_.rows();
    choice_.rows_in_windows = scorer_.rows_in_windows();
  }

  AutoChoice Run() {
    Try(Orthogonal());
    OSCAR_CHECK(!candidates_.empty());  // Hadamard needs no moments
    const LatentRecipe like = candidates_[Chosen()].recipe;
    if (rules_.query_matrix) Try(WithOwnMatrices(like));
    std::vector<size_t> order(candidates_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](size_t i) { return candidates_[i].best().damage; });
    order.resize(std::min(order.size(), kClippedLatents));
    if (std::ranges::find(order, size_t{0}) == order.end()) order.push_back(0);
    for (const size_t i : order) AddRatios(candidates_[i], coarse());
    size_t chosen = Chosen();
    AddRatios(candidates_[chosen], ratios());

    const LatentPoint &best = candidates_[chosen].best(), &hadamard = candidates_[0].best();
    choice_.k_check = Mean(best.scores.kl.check);
    choice_.k_hadamard = Mean(hadamard.scores.kl.check);
    choice_.v_check = Mean(best.scores.output.check);
    choice_.v_hadamard = Mean(hadamard.scores.output.check);
    if (best.damage_check > hadamard.damage_check) {
      choice_.k_fallback = choice_.v_fallback = candidates_[chosen].recipe.Name();
      chosen = 0;
      AddRatios(candidates_[0], ratios());
    }
    Finish(candidates_[chosen]);
    return std::move(choice_);
  }

 private:
  std::vector<LatentRecipe> Orthogonal() const {
    std::vector<LatentRecipe> recipes;
    const auto add = [&](LatentRecipe recipe) {
      recipes.push_back(recipe);
      if (!rules_.key_mean) return;
      recipe.keys.centred = true;
      recipes.push_back(recipe);
    };
    add({.keys = {.composition = Composition::kHPbr}});
    const Composition fitted = composition_;
    add({.keys = {.composition = fitted}});
    if (!observed_.fit.diagonal.empty())
      add({.keys = {.composition = fitted}, .target = ValueTarget::kDiagonal});
    return recipes;
  }

  std::vector<LatentRecipe> WithOwnMatrices(const LatentRecipe& like) const {
    LatentRecipe own = like;
    own.keys = {.kind = KeyTransformKind::kPairScaled,
                .folded = false,
                .per_head = true,
                .centred = like.keys.centred,
                .composition = composition_};
    std::vector<LatentRecipe> recipes = {own};
    own.keys.kind = KeyTransformKind::kBalanced;
    own.keys.folded = true;
    for (const double epsilon : {1e-2, 1e-1, 1.0}) {
      own.keys.epsilon = epsilon;
      recipes.push_back(own);
    }
    return recipes;
  }

  void Try(const std::vector<LatentRecipe>& recipes) {
    std::vector<CacheSide> sides;
    {
      const auto time = times_.Measure("choice: latent fits");
      sides = FitLatents(observed_.fit, recipes);
    }
    for (size_t i = 0; i < recipes.size(); ++i) {
      if (sides[i].num_rotations == 0) continue;  // cannot be fitted
      candidates_.push_back({recipes[i], std::move(sides[i]), {}});
      AddRatios(candidates_.back(), first());
    }
  }

  LatentCurve Score(const LatentCandidate& c, std::span<const double> ratios,
                    AutoScorer::Quantizer quantizer) {
    const auto time = times_.Measure("choice: latent scores");
    const CacheSide* const side[] = {&c.side};
    std::vector<AutoScorer::Trial> trials;
    for (const double ratio : ratios) trials.push_back({0, {ratio}});
    std::vector<AutoScorer::LatentScores> scores =
        scorer_.ScoreLatents(scorer_.RotateKeys(side), trials, quantizer);
    LatentCurve points;
    if (!hadamard_) hadamard_ = scores.at(0);  // the first candidate, at its first ratio
    for (size_t i = 0; i < ratios.size(); ++i) {
      points.push_back({.ratio = ratios[i],
                        .scores = scores[i],
                        .damage = DamageOf(scores[i], *hadamard_, &HeadScores::score),
                        .damage_check = DamageOf(scores[i], *hadamard_, &HeadScores::check)});
      const auto record = [&](const char* of, const HeadScores& s) {
        choice_.scores.push_back({.side = of,
                                  .recipe = c.recipe.Name(),
                                  .bits = quantizer.bits,
                                  .clip = ratios[i],
                                  .quant_group_size = quantizer.quant_group_size,
                                  .score = Mean(s.score),
                                  .check = Mean(s.check),
                                  .fitted_scales = FittedScalesOf(quantizer)});
      };
      record("k", points.back().scores.kl);
      record("v", points.back().scores.output);
    }
    return points;
  }

  // Latents are stored once and written like keys.
  AutoScorer::Quantizer Format(int bits) const { return choice_.Format(bits, /*of_keys=*/true); }

  void AddRatios(LatentCandidate& c, std::span<const double> ratios) {
    std::vector<double> missing;
    for (const double ratio : ratios) {
      if (std::ranges::find(c.points, ratio, &LatentPoint::ratio) == c.points.end())
        missing.push_back(ratio);
    }
    if (missing.empty()) return;
    std::ranges::move(Score(c, missing, Format(2)), std::back_inserter(c.points));
    std::ranges::sort(c.points, {}, &LatentPoint::ratio);
  }

  // Returns the index of the chosen candidate; index 0 is Hadamard.
  size_t Chosen() const {
    size_t chosen = 0;
    for (size_t i = 1; i < candidates_.size(); ++i) {
      if (candidates_[i].best().damage < (1 - kWorthwhile) * candidates_[chosen].best().damage)
        chosen = i;
    }
    return chosen;
  }

  void Finish(const LatentCandidate& c) {
    choice_.keys = c.recipe.keys;
    choice_.values = {c.recipe.target, false, c.recipe.keys.composition};
    choice_.k = choice_.v = c.side;
    for (const CacheWindows& windows : windows_)
      choice_.windows.push_back({windows, scorer_.RowsBeyond(windows)});
    AddOption(c, 2, c.points);
    const bool spends = options_.shares_bits();
    for (const int bits : MoreBits(options_)) {
      const ClipGrid& grid = GridOf(bits);
      const std::span<const double> tried =
          spends ? std::span<const double>(grid.ratios) : std::span<const double>(&grid.first, 1);
      AddOption(c, bits, Score(c, clips() ? tried : kUnclippedLatents, Format(bits)));
    }
    // Scores quantization groups of half the size.
    AutoScorer::Quantizer half = Format(2);
    const int64_t whole = half.quant_group_size == 0 ? c.side.dim : half.quant_group_size;
    half.quant_group_size = whole / 2;
    const double ratio = choice_.k_options.front().clip[0];
    if (whole >= 32 && whole % 2 == 0) (void)Score(c, {&ratio, 1}, half);
    choice_.stability = Halves();
  }

  void AddOption(const LatentCandidate& c, int bits, const LatentCurve& points) {
    SideOption k = LatentOption(bits, points, &AutoScorer::LatentScores::kl);
    const CacheSide* const side[] = {&c.side};
    std::vector<AutoScorer::Trial> trials = {{0, k.clip}};
    for (const double ratio : k.ratios) trials.push_back({0, {ratio}});
    const auto time = times_.Measure("choice: windows");
    const auto scores = scorer_.ScoreWindows(scorer_.RotateKeys(side), trials, Format(bits));
    for (size_t i = 0; i < trials.size(); ++i) {
      std::vector<double> of_windows;
      for (const std::vector<double>& heads : scores[i]) of_windows.push_back(Mean(heads));
      (i == 0 ? k.in_windows : k.windows_curve.emplace_back()) = std::move(of_windows);
    }
    choice_.k_options.push_back(std::move(k));
    choice_.v_options.push_back(LatentOption(bits, points, &AutoScorer::LatentScores::output));
  }

  // Fits the recipe to each half of the tokens, as in stability.h; halves only have one target.
  Stability Halves() {
    const LayerMoments& first = observed_.first_half;
    if (first.tokens == 0) return {};
    const auto time = times_.Measure("choice: stability");
    const LayerMoments second = OtherHalf(observed_.fit, first);
    Stability stability = CompareHalves(first, second);
    if (second.tokens == 0) return stability;
    const LatentRecipe recipe{choice_.keys};
    std::vector<const LayerMoments*> parts = {&first, &second, &observed_.fit};
    std::vector<double> kl, output;
    for (const LayerMoments* part : parts) {
      const CacheSide side = FitLatents(*part, {recipe}).at(0);
      if (side.num_rotations == 0) {
        kl.push_back(kNoFitCost);
        output.push_back(kNoFitCost);
        continue;
      }
      const CacheSide* const sides[] = {&side};
      const AutoScorer::Trial trial{0, choice_.k_options.front().clip};
      const AutoScorer::LatentScores scores =
          scorer_.ScoreLatents(scorer_.RotateKeys(sides), {&trial, 1}, Format(2)).at(0);
      kl.push_back(Mean(scores.kl.score) + Mean(scores.kl.check));
      output.push_back(Mean(scores.output.score) + Mean(scores.output.check));
    }
    const auto cost = [](const std::vector<double>& of) {
      return of[2] > 0 ? std::clamp(std::max(of[0], of[1]) / of[2] - 1, 0.0, kNoFitCost) : 0.0;
    };
    stability.k_cost = cost(kl);
    stability.v_cost = cost(output);
    stability.unstable =
        stability.few_tokens || stability.k_cost > kStableCost || stability.v_cost > kStableCost;
    return stability;
  }

  // SGLang's latent pool in the October tree (SGLANG_OSCAR_MLA_*) has no clip ratio.
  bool clips() const { return rules_.clip == ClipScope::kHead || rules_.clip == ClipScope::kLayer; }
  std::span<const double> ratios() const {
    return clips() ? std::span<const double>(GridOf(2).ratios) : kUnclippedLatents;
  }
  std::span<const double> coarse() const {
    return clips() ? std::span<const double>(kCoarseLatents) : kUnclippedLatents;
  }
  std::span<const double> first() const {
    return clips() ? std::span<const double>(&GridOf(2).first, 1) : kUnclippedLatents;
  }

  const ObservedLayer& observed_;
  const AutoOptions& options_;
  Composition composition_;
  const ConsumerRules& rules_;
  PhaseTimes& times_;
  std::vector<CacheWindows> windows_;
  const AutoScorer& scorer_;
  AutoChoice choice_;
  std::optional<AutoScorer::LatentScores> hadamard_;  // the unit of damage
  std::vector<LatentCandidate> candidates_;           // the first is Hadamard
};

}  // namespace

std::vector<AutoChoice> SearchLatentChoices(const ObservedLayer& observed, const LayerSpec& spec,
                                            const SearchOptions& options,
                                            const std::vector<AutoOptions>& others,
                                            PhaseTimes& times) {
  const AutoScorer scorer(observed, spec, PricedWindows(options.windows), /*offset=*/0,
                          AutoScorer::ValuesAtOnce(observed.keys.at(0).device().type()));
  return SearchEach(options.automatic, others, [&](const AutoOptions& of, bool) {
    return LatentSearch(observed, spec, of, options, scorer, times).Run();
  });
}

}  // namespace oscar
