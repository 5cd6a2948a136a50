// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/choose/choice_points.h"

#include <algorithm>

#include "linalg/base/check.h"

namespace oscar {
namespace {

SideOption At(const std::vector<SideOption>& options, double bits, double ratio) {
  const auto found = std::ranges::find(options, bits, &SideOption::bits);
  OSCAR_CHECK(found != options.end());
  SideOption option = *found;
  if (ratio > 0) option.SetRatio(ratio);
  return option;
}

bool SharesRatio(ClipScope scope) {
  return scope == ClipScope::kSide || scope == ClipScope::kModel;
}

}  // namespace

const std::vector<double>& SharedRatios() {
  static const std::vector<double> ratios = {0.88, 0.90, 0.92, 0.94};
  return ratios;
}

std::vector<ChoicePoint> PointsOf(const AutoOptions& options, const AutoChoice& choice) {
  const ConsumerRules& rules = RulesOf(options.consumer);
  const ChoicePoint here = PointOf(options, choice);
  std::vector<ChoicePoint> points = {here};
  if (SharesRatio(rules.clip)) {
    for (const double k : choice.k_option().ratios) {
      for (const double v : choice.v_option().ratios) {
        if ((rules.clip == ClipScope::kModel || choice.latent()) && k != v) continue;
        points.push_back({choice.k_bits, choice.v_bits, k, v});
      }
    }
  } else if (options.shares_bits()) {
    for (const SideOption& k : choice.k_options) {
      for (const SideOption& v : choice.v_options) {
        if (!choice.latent() || k.bits == v.bits) points.push_back({k.bits, v.bits, 0, 0});
      }
    }
  }
  // Lists `here` once, followed by the other points with the same keys.
  const auto again = std::find(points.begin() + 1, points.end(), here);
  if (again != points.end()) points.erase(again);
  std::stable_partition(points.begin() + 1, points.end(), [&](const ChoicePoint& point) {
    return point.k_bits == here.k_bits && point.k_clip == here.k_clip;
  });
  return points;
}

ChoicePoint PointOf(const AutoOptions& options, const AutoChoice& choice) {
  if (!SharesRatio(RulesOf(options.consumer).clip)) return {choice.k_bits, choice.v_bits, 0, 0};
  return {choice.k_bits, choice.v_bits, choice.k_option().clip.at(0), choice.v_option().clip.at(0)};
}

SideOption KeysAt(const AutoChoice& choice, const ChoicePoint& point) {
  return At(choice.k_options, point.k_bits, point.k_clip);
}

SideOption ValuesAt(const AutoChoice& choice, const ChoicePoint& point) {
  return At(choice.v_options, point.v_bits, point.v_clip);
}

}  // namespace oscar
