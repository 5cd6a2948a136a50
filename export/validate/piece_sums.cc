// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/piece_sums.h"

#include <algorithm>

#include "export/evaluate/position_buckets.h"
#include "export/report/quantile_names.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

void AddTo(RatioUnit& unit, double value) {
  unit.sum += value;
  unit.weight += 1;
}

}  // namespace

void PieceSums::Add(int64_t sequence, int64_t position, int64_t length, double value) {
  AddTo(total_, value);
  AddTo(pieces_[{sequence, position * kPositionBins / length}], value);
}

std::optional<Interval> PieceSums::Bootstrap(int64_t resamples, uint64_t seed) const {
  std::vector<RatioUnit> units;
  for (const auto& [key, unit] : pieces_) units.push_back(unit);
  return BootstrapRatio(units, {.resamples = resamples, .confidence = 0.95, .seed = seed});
}

Json PieceSums::ToJson() const {
  Json json = Json::array();
  for (const auto& [key, unit] : pieces_)
    json.push_back({key.first, key.second, unit.sum, unit.weight});
  return json;
}

measures::Distribution QuantilesOf(std::vector<float> samples) {
  std::vector<double> probabilities;
  for (const NamedQuantile& named : kReportQuantiles) probabilities.push_back(named.probability);
  const std::vector<double> quantiles = Quantiles(std::move(samples), probabilities);
  measures::Distribution distribution;
  size_t next = 0;
  measures::ForEachField<measures::Distribution>([&](std::string_view name, auto pointer) {
    if constexpr (std::is_assignable_v<decltype(distribution.*pointer), double>)
      if (next < quantiles.size() && name == kReportQuantiles[next].name)
        distribution.*pointer = quantiles[next++];
  });
  OSCAR_CHECK_EQ(next, quantiles.size());
  return distribution;
}

measures::Distribution KlOf(const PieceSums& sums, std::vector<float> samples, int64_t resamples,
                            uint64_t seed) {
  measures::Distribution kl = QuantilesOf(std::move(samples));
  kl.mean = sums.mean();
  kl.interval = sums.Bootstrap(resamples, seed);
  return kl;
}

}  // namespace oscar
