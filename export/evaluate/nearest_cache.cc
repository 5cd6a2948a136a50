// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/nearest_cache.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "linalg/base/check.h"
#include "linalg/base/splitmix64.h"

namespace oscar {
namespace {

using Sums = std::vector<NearestCache::Arm>;

// The server's arithmetic noise flips codes, so even the right cache differs from the server by up
// to half of its effect (its difference from the exact cache). A cache with independent errors
// differs by its whole effect. An exact cache has no codes that could flip.
constexpr double kExplains = 0.75, kExplainsExact = 0.5;  // fractions of the effect
constexpr double kSure = 1.645;                           // one-sided 95 %, in standard deviations
constexpr double kMostMore = 1000;                        // more_tokens is at most this multiple

size_t NearestOf(const Sums& sums, size_t begin, size_t end) {
  const auto at = [&](size_t i) { return sums.begin() + static_cast<ptrdiff_t>(i); };
  const auto found = std::ranges::min_element(at(begin), at(end), {}, &NearestCache::Arm::distance);
  return static_cast<size_t>(found - sums.begin());
}

// Returns the largest distance at which an arm still explains the server. The exact cache has no
// effect of its own, so its limit depends on the smallest effect of the other arms.
double Allowed(const Sums& sums, size_t arm) {
  if (arm > 0) return kExplains * sums[arm].effect;
  return kExplainsExact *
         std::ranges::min_element(sums.begin() + 1, sums.end(), {}, &NearestCache::Arm::effect)
             ->effect;
}

// Returns how much nearer the artifact's nearest cache is than every other cache and than its
// allowed distance. Positive if the server behaves like the artifact.
double Margin(const Sums& sums, size_t num_own) {
  const size_t own = NearestOf(sums, 1, num_own + 1);
  const size_t other = NearestOf(sums, num_own + 1, sums.size());
  return std::min({sums[0].distance, sums[other].distance, Allowed(sums, own)}) -
         sums[own].distance;
}

}  // namespace

NearestCache FindNearestCache(const ServedTokens& tokens, const BootstrapOptions& options) {
  OSCAR_CHECK(!tokens.server.empty() && tokens.arms.size() > tokens.num_own + 1);
  std::map<int64_t, std::vector<size_t>> by_prompt;
  for (size_t i = 0; i < tokens.server.size(); ++i) by_prompt[tokens.prompts[i]].push_back(i);
  std::vector<std::vector<size_t>> prompts;
  for (auto& [prompt, indices] : by_prompt) prompts.push_back(std::move(indices));

  const auto add = [&](Sums& sums, size_t token) {
    for (size_t arm = 0; arm < sums.size(); ++arm) {
      sums[arm].distance += std::abs(tokens.server[token] - tokens.arms[arm][token]);
      sums[arm].effect += std::abs(tokens.arms[0][token] - tokens.arms[arm][token]);
    }
  };
  const auto count = static_cast<double>(tokens.server.size());
  NearestCache result;
  result.arms.resize(tokens.arms.size());
  for (size_t i = 0; i < tokens.server.size(); ++i) add(result.arms, i);
  const double margin = Margin(result.arms, tokens.num_own) / count;

  SplitMix64 random(options.seed);
  const auto resamples = static_cast<double>(options.resamples);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < options.resamples; ++i) {
    Sums sums(tokens.arms.size());
    double drawn = 0;
    for (size_t p = 0; p < prompts.size(); ++p) {
      const std::vector<size_t>& prompt = random.Pick(prompts);
      for (size_t t = 0; t < prompt.size(); ++t) add(sums, random.Pick(prompt));
      drawn += static_cast<double>(prompt.size());
    }
    const double own = Margin(sums, tokens.num_own) / drawn;
    result.own_confidence += own > 0;
    result.arms[NearestOf(sums, 0, sums.size())].nearest += 1;
    sum += own;
    squares += own * own;
  }
  result.nearest = NearestOf(result.arms, 0, result.arms.size());
  result.explained = result.arms[result.nearest].distance <= Allowed(result.arms, result.nearest);
  for (NearestCache::Arm& arm : result.arms) {
    arm.distance /= count;
    arm.effect /= count;
    arm.nearest /= resamples;
  }
  result.own_confidence /= resamples;
  const double spread =
      std::sqrt(std::max(0.0, squares / resamples - sum * sum / resamples / resamples));
  const double times = std::pow(kSure * spread / std::abs(margin), 2);
  result.more_tokens = static_cast<int64_t>(
      std::ceil(count * std::clamp(std::isnan(times) ? kMostMore : times - 1, 0.0, kMostMore)));
  return result;
}

}  // namespace oscar
