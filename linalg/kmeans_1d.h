// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Weighted k-means of numbers: Lloyd's iterations from a greedy k-means++ start. The values are
// sorted, so a cluster is an interval, and with prefix sums an iteration costs k binary searches.
// The result is a local optimum and is the same for the same seed. Sources: the centroids of
// KVQuant (arXiv 2401.18079, section 3.2); k-means++ (Arthur and Vassilvitskii 2007).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace oscar {

struct KMeansOptions {
  int64_t clusters = 4;
  int64_t max_iterations = 50;
  uint64_t seed = 0;
};

// Returns ascending centroids. `sorted` is ascending and not empty. `weights` has one weight per
// value, none of them negative, or is empty (all weights are 1). If there are fewer distinct values
// than clusters, the last centroid repeats. Throws NumericalError if a value or weight is not
// finite, or if no weight is positive.
std::vector<float> KMeans1d(std::span<const float> sorted, std::span<const float> weights,
                            const KMeansOptions& options);

}  // namespace oscar
