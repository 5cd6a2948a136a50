// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// StreamedComparison in a build without the CUDA kernels: it supports no rows.
#include "export/validate/streamed_comparison.h"
#include "linalg/base/check.h"

namespace oscar {

bool StreamedComparison::Takes(const AttentionSpec&, const at::Tensor&, const at::Tensor&,
                               const at::Tensor&) {
  return false;
}

StreamedComparison::StreamedComparison(const AttentionSpec&, const at::Tensor&, const at::Tensor&,
                                       const at::Tensor&) {
  OSCAR_CHECK(false);
}

RowErrors StreamedComparison::NoErrors() const { return {}; }

std::vector<RowErrors> StreamedComparison::Compare(const StoredCache&, const at::Tensor&,
                                                   std::span<const ExactSides>) const {
  return {};
}

}  // namespace oscar
