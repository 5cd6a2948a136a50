// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/kmeans_1d.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linalg/base/error.h"
#include "linalg/base/splitmix64.h"
#include "tests/linalg/random_values.h"

namespace oscar {
namespace {

using Floats = std::vector<float>;

Floats SortedNormal(int64_t count, uint64_t seed) {
  const std::vector<double> x = RandomRows(1, count, seed);
  Floats sorted(x.begin(), x.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// Returns sum w min_c (x - c)^2 / sum w, which every iteration decreases.
double KMeansDistortion(const Floats& x, const Floats& weights, const Floats& centroids) {
  double sum = 0, total = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double least = std::numeric_limits<double>::infinity();
    for (const double c : centroids) least = std::min(least, (x[i] - c) * (x[i] - c));
    const double weight = weights.empty() ? 1.0 : weights[i];
    sum += weight * least;
    total += weight;
  }
  return sum / total;
}

TEST(KMeans1d, FindsClustersThatAreApart) {
  const Floats x = {-60, -59, -59, -58, 0, 1, 50, 50.5F, 100};
  for (uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(KMeans1d(x, {}, {4, 50, seed}), (Floats{-59, 0.5F, 50.25F, 100})) << seed;
}

TEST(KMeans1d, AnIterationIsLloyds) {
  const Floats x = SortedNormal(500, 6);
  for (const int64_t iterations : {0, 1, 2}) {
    const Floats before = KMeans1d(x, {}, {4, iterations, 5}),
                 after = KMeans1d(x, {}, {4, iterations + 1, 5});
    double sum[4] = {}, count[4] = {};
    for (const float value : x) {
      size_t nearest = 0;
      for (size_t c = 1; c < 4; ++c)
        if (std::abs(value - before[c]) < std::abs(value - before[nearest])) nearest = c;
      sum[nearest] += value;
      ++count[nearest];
    }
    for (size_t c = 0; c < 4; ++c) EXPECT_NEAR(after[c], sum[c] / count[c], 1e-6) << iterations;
    EXPECT_NE(after, before);
  }
}

// The value 2 is equally far from both centres and is assigned to the lower one.
TEST(KMeans1d, TiesGoToTheLowerCentre) {
  const Floats x = {0, 2, 4};
  int seeds = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    if (KMeans1d(x, {}, {2, 0, seed}) != Floats{0, 4}) continue;
    EXPECT_EQ(KMeans1d(x, {}, {2, 1, seed}), (Floats{1, 4}));
    ++seeds;
  }
  EXPECT_GT(seeds, 0);
}

TEST(KMeans1d, WeightsAreRepetitions) {
  const Floats x = {0, 1, 2, 7, 9}, weights = {3, 1, 2, 1, 4};
  Floats repeated;
  for (size_t i = 0; i < x.size(); ++i)
    repeated.insert(repeated.end(), static_cast<size_t>(weights[i]), x[i]);
  EXPECT_EQ(KMeans1d(x, weights, {2, 50, 3}), KMeans1d(repeated, {}, {2, 50, 3}));
  EXPECT_FLOAT_EQ(KMeans1d(x, weights, {1, 50, 0})[0], (1 + 4 + 7 + 36) / 11.0F);
}

// Compares the best of a few seeds with an exhaustive search over all splits of the sorted values
// into three intervals. The weights are random.
TEST(KMeans1d, TheBestSeedIsTheWeightedOptimum) {
  const Floats x = SortedNormal(60, 11);
  const std::vector<double> random = RandomRows(1, 60, 12);
  Floats weights;
  for (const double w : random) weights.push_back(static_cast<float>(w * w));
  const auto part = [&](size_t begin, size_t end) {
    double w = 0, wx = 0, sum = 0;
    for (size_t i = begin; i < end; ++i) {
      w += weights[i];
      wx += double{weights[i]} * x[i];
    }
    for (size_t i = begin; i < end; ++i) sum += weights[i] * std::pow(x[i] - wx / w, 2);
    return sum;
  };
  double best = std::numeric_limits<double>::infinity(), all = 0;
  for (const float w : weights) all += w;
  for (size_t a = 1; a < 59; ++a) {
    for (size_t b = a + 1; b < 60; ++b)
      best = std::min(best, (part(0, a) + part(a, b) + part(b, 60)) / all);
  }
  double found = std::numeric_limits<double>::infinity();
  for (uint64_t seed = 0; seed < 10; ++seed)
    found = std::min(found, KMeansDistortion(x, weights, KMeans1d(x, weights, {3, 50, seed})));
  EXPECT_NEAR(found / best, 1, 1e-5);
}

TEST(KMeans1d, IsAFunctionOfItsSeed) {
  const Floats x = SortedNormal(1000, 4);
  EXPECT_EQ(KMeans1d(x, {}, {16, 3, 1}), KMeans1d(x, {}, {16, 3, 1}));
  EXPECT_NE(KMeans1d(x, {}, {16, 3, 1}), KMeans1d(x, {}, {16, 3, 2}));
  EXPECT_EQ(KMeans1d(x, {}, {16, 3}), KMeans1d(x, {}, {16, 3, 0}));
}

// Without iterations the start is returned. For one cluster it is the better of two draws.
TEST(KMeans1d, StartsFromTheBetterOfTwoDraws) {
  const Floats x = {0, 1, 2, 3, 5, 8, 13, 21, 34, 55};
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SplitMix64 random(seed);
    const Floats first = {x[static_cast<size_t>(random.Uniform() * 10)]},
                 second = {x[static_cast<size_t>(random.Uniform() * 10)]};
    const bool better = KMeansDistortion(x, {}, second) < KMeansDistortion(x, {}, first);
    EXPECT_EQ(KMeans1d(x, {}, {1, 0, seed}), better ? second : first) << seed;
  }
}

// The probability of a draw is proportional to the squared distance to the nearest centre, so no
// centre is drawn twice.
TEST(KMeans1d, AsManyClustersAsValuesStartFromAllOfThem) {
  const Floats x = {1, 2, 4, 5, 9, 11, 12, 18, 20, 29, 31, 32, 40, 47, 53, 60};
  for (uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(KMeans1d(x, {}, {16, 0, seed}), x) << seed;
}

TEST(KMeans1d, WeightsBelowOneCount) {
  EXPECT_EQ(KMeans1d(Floats{0, 1, 10, 11}, Floats(4, 0.25F), {.clusters = 2}),
            (Floats{0.5F, 10.5F}));
}

TEST(KMeans1d, FewerValuesThanClusters) {
  EXPECT_EQ(KMeans1d(Floats{2, 2, 2}, {}, {4, 50, 0}), Floats(4, 2));
  const Floats two = KMeans1d(Floats{1, 1, 3}, {}, {4, 50, 0});
  EXPECT_EQ(two.front(), 1);
  EXPECT_EQ(two.back(), 3);
}

TEST(KMeans1d, RefusesWhatHasNoMean) {
  EXPECT_THROW(KMeans1d(Floats{1, 2}, Floats{0, 0}, {}), NumericalError);
  EXPECT_THROW(KMeans1d(Floats{1, 2}, Floats{1, -1}, {}), NumericalError);
  EXPECT_THROW(KMeans1d(Floats{1, std::numeric_limits<float>::infinity()}, {}, {}), NumericalError);
}

}  // namespace
}  // namespace oscar
