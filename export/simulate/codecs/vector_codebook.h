// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Codebooks of short vectors: k-means, and the round trip of rows whose neighbouring values are
// replaced by the nearest entry.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace oscar {

struct CodebookOptions {
  int64_t entries = 256;
  int iterations = 30;
  // k-means on the unit sphere: points and entries have norm 1, the nearest is that of least angle.
  bool spherical = false;
  uint64_t seed = 0;
};

// [entries, width] float64 on the host, fitted to points [count, width]. The start is a draw of
// different points; where there are fewer, all of them, and the last one repeats.
at::Tensor VectorCodebook(const at::Tensor& points, const CodebookOptions& options);

// Replaces each of points [..., width] by its nearest entry, with the largest x e - |e|^2 / 2.
at::Tensor NearestEntries(const at::Tensor& points, const at::Tensor& codebook);

}  // namespace oscar
