// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/kmeans_1d.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/base/splitmix64.h"

namespace oscar {
namespace {

// Prefix sums over the first i values, i = 0 .. n.
struct Prefix {
  std::vector<double> w, wx, wxx;
};

Prefix PrefixSums(std::span<const float> x, std::span<const float> weights) {
  Prefix sums;
  for (auto* sum : {&sums.w, &sums.wx, &sums.wxx}) sum->resize(x.size() + 1);
  for (size_t i = 0; i < x.size(); ++i) {
    const double value = x[i], weight = weights.empty() ? 1.0 : weights[i];
    if (!std::isfinite(value) || !std::isfinite(weight) || weight < 0)
      throw NumericalError(
          "k-means: a value or weight is NaN or infinite, or a weight is negative");
    sums.w[i + 1] = sums.w[i] + weight;
    sums.wx[i + 1] = sums.wx[i] + weight * value;
    sums.wxx[i + 1] = sums.wxx[i] + weight * value * value;
  }
  if (!(sums.w.back() > 0)) throw NumericalError("k-means: no value has a positive weight");
  return sums;
}

// sum w (x - c)^2 over values [begin, end).
double Distortion(const Prefix& sums, size_t begin, size_t end, double c) {
  const double w = sums.w[end] - sums.w[begin], wx = sums.wx[end] - sums.wx[begin],
               wxx = sums.wxx[end] - sums.wxx[begin];
  return std::max(0.0, wxx - 2 * c * wx + c * c * w);
}

// Returns [k + 1] cuts: the values [cuts[i], cuts[i + 1]) are nearest to the i-th centre, in
// ascending order. A value halfway between two centres goes to the lower one.
std::vector<size_t> Cuts(std::span<const float> x, const std::vector<double>& centers) {
  std::vector<size_t> cuts = {0};
  for (size_t i = 0; i + 1 < centers.size(); ++i) {
    const double middle = (centers[i] + centers[i + 1]) / 2;
    const auto cut = std::upper_bound(x.begin() + static_cast<std::ptrdiff_t>(cuts.back()), x.end(),
                                      middle, [](double m, float value) { return m < value; });
    cuts.push_back(static_cast<size_t>(cut - x.begin()));
  }
  cuts.push_back(x.size());
  return cuts;
}

// Returns the index of the value at which the cumulative sum over [begin, end) exceeds `target`.
template <typename SumUpTo>
size_t Pick(size_t begin, size_t end, double target, SumUpTo sum_up_to) {
  while (end - begin > 1) {
    const size_t middle = begin + (end - begin) / 2;
    (sum_up_to(middle) > target ? end : begin) = middle;
  }
  return begin;
}

double TotalDistortion(std::span<const float> x, const Prefix& sums,
                       const std::vector<double>& centers) {
  const std::vector<size_t> cuts = Cuts(x, centers);
  double total = 0;
  for (size_t i = 0; i < centers.size(); ++i)
    total += Distortion(sums, cuts[i], cuts[i + 1], centers[i]);
  return total;
}

// Draws a value with probability proportional to w times its squared distance from the centres.
double Draw(std::span<const float> x, const Prefix& sums, const std::vector<double>& centers,
            double uniform) {
  if (centers.empty()) {
    const double target = uniform * sums.w.back();
    return x[Pick(0, x.size(), target, [&](size_t i) { return sums.w[i]; })];
  }
  const std::vector<size_t> cuts = Cuts(x, centers);
  std::vector<double> parts;
  double total = 0;
  for (size_t i = 0; i < centers.size(); ++i) {
    parts.push_back(Distortion(sums, cuts[i], cuts[i + 1], centers[i]));
    total += parts.back();
  }
  double target = uniform * total;
  for (size_t i = 0; i < centers.size(); ++i) {
    if (parts[i] > 0 && (target < parts[i] || i + 1 == centers.size())) {
      return x[Pick(cuts[i], cuts[i + 1], target,
                    [&](size_t end) { return Distortion(sums, cuts[i], end, centers[i]); })];
    }
    target -= parts[i];
  }
  return centers.back();  // every value is a centre
}

// Greedy k-means++: draws 2 + floor(ln k) candidates and keeps the one with the lowest distortion.
std::vector<double> Start(std::span<const float> x, const Prefix& sums,
                          const KMeansOptions& options) {
  const int trials = 2 + static_cast<int>(std::log(static_cast<double>(options.clusters)));
  SplitMix64 random(options.seed);
  std::vector<double> centers;
  for (int64_t i = 0; i < options.clusters; ++i) {
    std::vector<double> best;
    double least = std::numeric_limits<double>::infinity();
    for (int trial = 0; trial < trials; ++trial) {
      std::vector<double> with = centers;
      const double center = Draw(x, sums, centers, random.Uniform());
      with.insert(std::upper_bound(with.begin(), with.end(), center), center);
      const double distortion = TotalDistortion(x, sums, with);
      if (distortion < least) {
        least = distortion;
        best = std::move(with);
      }
    }
    centers = std::move(best);
  }
  return centers;
}

}  // namespace

std::vector<float> KMeans1d(std::span<const float> sorted, std::span<const float> weights,
                            const KMeansOptions& options) {
  OSCAR_CHECK(!sorted.empty() && options.clusters > 0);
  OSCAR_CHECK(weights.empty() || weights.size() == sorted.size());
  OSCAR_CHECK(std::is_sorted(sorted.begin(), sorted.end()));
  const Prefix sums = PrefixSums(sorted, weights);
  std::vector<double> centers = Start(sorted, sums, options);
  std::vector<size_t> cuts;
  for (int64_t iteration = 0; iteration < options.max_iterations; ++iteration) {
    std::vector<size_t> next = Cuts(sorted, centers);
    if (next == cuts) break;
    cuts = std::move(next);
    for (size_t i = 0; i < centers.size(); ++i) {
      const double w = sums.w[cuts[i + 1]] - sums.w[cuts[i]];
      if (w > 0) centers[i] = (sums.wx[cuts[i + 1]] - sums.wx[cuts[i]]) / w;
    }
    std::sort(centers.begin(), centers.end());
  }
  return {centers.begin(), centers.end()};
}

}  // namespace oscar
