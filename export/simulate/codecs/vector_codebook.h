// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Codebooks of short vectors: fits them by k-means, and replaces vectors by their nearest entries.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace oscar {

struct CodebookOptions {
  int64_t entries = 256;
  int iterations = 30;
  // k-means on the unit sphere: points and entries have norm 1, and the smallest angle is nearest.
  bool spherical = false;
  uint64_t seed = 0;
};

// Fits a codebook [entries, width] float64 on the host to points [count, width]. k-means starts
// from randomly drawn distinct points. If there are too few, it starts from all, repeating the
// last.
at::Tensor VectorCodebook(const at::Tensor& points, const CodebookOptions& options);

// Replaces each point x [..., width] by the nearest entry e, which has the largest x e - |e|^2 / 2.
at::Tensor NearestEntries(const at::Tensor& points, const at::Tensor& codebook);

}  // namespace oscar
