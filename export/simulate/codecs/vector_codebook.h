// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Codebooks of short vectors: k-means, and a round trip that replaces neighbouring values of rows
// by the nearest entry.
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

// Returns [entries, width] float64 on the host, fitted to points [count, width]. It starts from a
// draw of distinct points. If there are too few, it uses all and repeats the last one.
at::Tensor VectorCodebook(const at::Tensor& points, const CodebookOptions& options);

// Replaces each of points [..., width] by its nearest entry e: the largest x e - |e|^2 / 2.
at::Tensor NearestEntries(const at::Tensor& points, const at::Tensor& codebook);

}  // namespace oscar
