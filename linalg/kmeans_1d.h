// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Weighted k-means of numbers: Lloyd's iterations from a greedy k-means++ start. On sorted values
// with prefix sums a cluster is an interval, so an iteration costs k binary searches. The
// result is a local optimum and depends on the seed, which is the whole state. Source: the
// centroids of KVQuant (arXiv 2401.18079, section 3.2); k-means++: Arthur and Vassilvitskii 2007.
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

// Centroids, ascending. `sorted` is ascending and not empty; `weights` of the same size, not
// negative, or empty for 1 each. Fewer distinct values than clusters: the last ones repeat. Throws
// NumericalError if a value or weight is not finite or no weight is positive.
std::vector<float> KMeans1d(std::span<const float> sorted, std::span<const float> weights,
                            const KMeansOptions& options);

}  // namespace oscar
