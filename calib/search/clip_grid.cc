// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/search/clip_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "linalg/base/check.h"

namespace oscar {

const ClipGrid& GridOf(int bits) {
  static const std::array<ClipGrid, 4> grids = {{{2, {0.86, 0.88, 0.90, 0.92, 0.94, 0.96}, 0.92},
                                                 {3, {0.92, 0.94, 0.96, 0.98}, 0.96},
                                                 {4, {0.96, 0.98, 0.99, 1.0}, 0.99},
                                                 {8, {1.0}, 1.0}}};
  const auto* const found = std::ranges::find(grids, bits, &ClipGrid::bits);
  OSCAR_CHECK(found != grids.end());
  return *found;
}

double ScoreOf(const HeadScores& scores) { return Mean(scores.score); }

bool WorthMore(const HeadScores& later, const HeadScores& earlier, double share) {
  if (!(Mean(later.score) < (1 - share) * Mean(earlier.score))) return false;
  const size_t texts = std::min(later.of_texts.size(), earlier.of_texts.size());
  if (texts < 2) return true;
  double sum = 0, squares = 0;
  for (size_t i = 0; i < texts; ++i) {
    const double ratio = std::log((later.of_texts[i] + 1e-12) / (earlier.of_texts[i] + 1e-12));
    sum += ratio;
    squares += ratio * ratio;
  }
  const auto count = static_cast<double>(texts);
  const double mean = sum / count;
  const double variance = std::max(0.0, squares / count - mean * mean) / (count - 1);
  return mean < -std::sqrt(variance);
}

size_t Best(const Curve& curve) {
  size_t best = 0;
  for (size_t i = 1; i < curve.size(); ++i) {
    if (ScoreOf(curve[i].second) < ScoreOf(curve[best].second)) best = i;
  }
  return best;
}

void Insert(Curve& curve, double ratio, HeadScores scores) {
  const auto at = std::ranges::find_if(curve, [&](const auto& p) { return p.first > ratio; });
  curve.insert(at, {ratio, std::move(scores)});
}

bool Has(const Curve& curve, double ratio) {
  return std::ranges::any_of(curve, [&](const auto& p) { return p.first == ratio; });
}

SideOption OptionOf(int bits, const Curve& curve, bool clip_of_head) {
  SideOption option{.bits = static_cast<double>(bits), .clip = {}};
  for (const auto& [ratio, scores] : curve) {
    option.ratios.push_back(ratio);
    option.curve.push_back(ScoreOf(scores));
    option.check_curve.push_back(Mean(scores.check));
  }
  const size_t best = Best(curve);
  option.clip = {curve[best].first};
  option.score = ScoreOf(curve[best].second);
  option.check = Mean(curve[best].second.check);
  option.head_score = curve[best].second.score;
  option.head_check = curve[best].second.check;
  const size_t heads = option.head_score.size();
  if (!clip_of_head || heads == 1) return option;
  std::vector<double> clip(heads), score(heads), check(heads);
  const HeadScores& shared = curve[best].second;
  for (size_t head = 0; head < heads; ++head) {
    size_t own = best;
    for (size_t i = 0; i < curve.size(); ++i) {
      const HeadScores& other = curve[i].second;
      if (other.score[head] < (1 - kWorthwhile) * curve[own].second.score[head] &&
          other.check[head] <= shared.check[head])
        own = i;
    }
    clip[head] = curve[own].first;
    score[head] = curve[own].second.score[head];
    check[head] = curve[own].second.check[head];
  }
  option.clip = std::move(clip);
  option.score = Mean(score);
  option.check = Mean(check);
  option.head_score = std::move(score);
  option.head_check = std::move(check);
  return option;
}

}  // namespace oscar
