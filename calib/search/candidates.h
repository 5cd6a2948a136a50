// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Candidate recipes in the searches of one layer. They are fitted, and scored at several clip
// ratios; every score is recorded. A search reuses the fits and scores of other consumers'
// searches. Candidates that are scored together are recorded in the given order, each with all its
// ratios.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "calib/choose/choice.h"
#include "calib/phase_times.h"
#include "calib/search/clip_grid.h"
#include "calib/search/scorer.h"

namespace oscar {

// A recipe (KeyRecipe or ValueRecipe), its fit and its measurements.
template <typename Recipe>
struct Candidate {
  Recipe recipe;
  CacheSide side;
  Curve curve;  // scores at 2 bits
  const HeadScores& scores() const { return curve[Best(curve)].second; }
  double best() const { return ScoreOf(scores()); }
};

// Scores that the searches of a layer share, keyed by recipe name.
struct KnownScores {
  // Whether this is a key recipe; then name, bits, ratio, group size, scale fit and metadata type.
  using Key = std::tuple<bool, std::string, int, double, int64_t, ScaleFit, MetadataType>;
  std::map<Key, HeadScores> scores;
};

class CandidateScores {
 public:
  // Keeps references to all but the last two arguments; records into `scores`.
  CandidateScores(const AutoScorer& scorer, PhaseTimes& times, KnownScores& known,
                  std::vector<CandidateScore>& scores, const AutoScorer::Quantizer& keys,
                  const AutoScorer::Quantizer& values)
      : scorer_(scorer),
        times_(times),
        known_(known),
        scores_(scores),
        keys_(keys),
        values_(values) {}

  template <typename Recipe>
  AutoScorer::Rotated Rotate(const Candidate<Recipe>& c) const {
    const CacheSide* const side[] = {&c.side};
    return kKeys<Recipe> ? scorer_.RotateKeys(side) : scorer_.RotateValues(side);
  }

  // Scores candidates at 2 bits, at those `ratios` for which they have no score yet.
  template <typename Recipe>
  void AddRatios(std::span<Candidate<Recipe>* const> candidates, std::span<const double> ratios) {
    std::vector<Candidate<Recipe>*> scored;
    std::vector<const CacheSide*> sides;
    std::vector<AutoScorer::Trial> trials;
    for (Candidate<Recipe>* c : candidates) {
      const size_t before = trials.size();
      for (const double ratio : ratios) {
        if (Has(c->curve, ratio)) continue;
        if (const HeadScores* known = Known(c->recipe, ratio)) {
          Record(c->recipe, Format<Recipe>(), ratio, *known);
          Insert(c->curve, ratio, *known);
        } else {
          trials.push_back({sides.size(), {ratio}});
        }
      }
      if (trials.size() == before) continue;
      scored.push_back(c);
      sides.push_back(&c->side);
    }
    std::vector<HeadScores> scores = Score<Recipe>(sides, trials, Format<Recipe>());
    for (size_t i = 0; i < trials.size(); ++i) {
      Candidate<Recipe>& c = *scored[trials[i].side];
      const double ratio = trials[i].clip[0];
      Record(c.recipe, Format<Recipe>(), ratio, scores[i]);
      Insert(c.curve, ratio, std::move(scores[i]));
    }
  }
  template <typename Recipe>
  void AddRatios(Candidate<Recipe>& c, std::span<const double> ratios) {
    Candidate<Recipe>* const one[] = {&c};
    AddRatios<Recipe>(one, ratios);
  }

  // Returns the curve of one candidate; `rotated` must contain only that candidate.
  template <typename Recipe>
  Curve ScoreCurve(const Candidate<Recipe>& c, const AutoScorer::Rotated& rotated,
                   std::span<const double> ratios, AutoScorer::Quantizer quantizer) {
    std::vector<AutoScorer::Trial> trials;
    for (const double ratio : ratios) trials.push_back({0, {ratio}});
    std::vector<HeadScores> scores = Score<Recipe>(rotated, trials, quantizer);
    Curve curve;
    for (size_t i = 0; i < ratios.size(); ++i) {
      Record(c.recipe, quantizer, ratios[i], scores[i]);
      Insert(curve, ratios[i], std::move(scores[i]));
    }
    return curve;
  }

 private:
  template <typename Recipe>
  static constexpr bool kKeys = std::is_same_v<Recipe, KeyRecipe>;

  template <typename Recipe>
  const AutoScorer::Quantizer& Format() const {
    return kKeys<Recipe> ? keys_ : values_;
  }

  template <typename Recipe>
  std::vector<HeadScores> Score(const auto& sides, AutoScorer::Trials trials,
                                AutoScorer::Quantizer quantizer) {
    const auto time = times_.Measure(kKeys<Recipe> ? "choice: key scores" : "choice: value scores");
    return kKeys<Recipe> ? scorer_.ScoreKeys(sides, trials, quantizer)
                         : scorer_.ScoreValues(sides, trials, quantizer);
  }
  template <typename Recipe>
  const HeadScores* Known(const Recipe& recipe, double clip) const {
    const auto found = known_.scores.find({kKeys<Recipe>, recipe.Name(), 2, clip,
                                           Format<Recipe>().quant_group_size,
                                           Format<Recipe>().scales, Format<Recipe>().metadata});
    return found == known_.scores.end() ? nullptr : &found->second;
  }
  template <typename Recipe>
  void Record(const Recipe& recipe, const AutoScorer::Quantizer& quantizer, double clip,
              const HeadScores& scores) {
    const auto& [bits, group, metadata, fit] = quantizer;
    known_.scores.try_emplace({kKeys<Recipe>, recipe.Name(), bits, clip, group, fit, metadata},
                              scores);
    scores_.push_back({kKeys<Recipe> ? "k" : "v", recipe.Name(), bits, clip, group, ScoreOf(scores),
                       Mean(scores.check), FittedScalesOf(quantizer)});
  }

  const AutoScorer& scorer_;
  PhaseTimes& times_;
  KnownScores& known_;
  std::vector<CandidateScore>& scores_;
  AutoScorer::Quantizer keys_, values_;  // 2-bit quantizers to compare recipes
};

}  // namespace oscar
