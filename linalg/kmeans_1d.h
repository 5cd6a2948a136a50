// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Weighted k-means of numbers: Lloyd's iterations from a greedy k-means++ start. On sorted values
// with prefix sums a cluster is an interval, so an iteration costs k binary searches. The result is
// a local optimum that depends only on the seed. Source: the centroids of KVQuant (arXiv
// 2401.18079, section 3.2); k-means++: Arthur and Vassilvitskii 2007.
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

// Returns ascending centroids. `sorted` is ascending and not empty. `weights` has the same size and
// no negative values, or is empty (all weights 1). If there are fewer distinct values than
// clusters, the last centroid repeats. Throws NumericalError if a value or weight is not finite or
// no weight is positive.
std::vector<float> KMeans1d(std::span<const float> sorted, std::span<const float> weights,
                            const KMeansOptions& options);

}  // namespace oscar
