// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/cache/cache_kernels.h"

namespace oscar {

std::optional<at::Tensor> AffineRoundTripInOneKernel(const at::Tensor&, const at::Tensor&,
                                                     const AffineFormat&) {
  return std::nullopt;
}

std::optional<at::Tensor> FeedbackRoundTripInTwoKernels(const at::Tensor&, const at::Tensor&,
                                                        const AffineFormat&, const at::Tensor&) {
  return std::nullopt;
}

std::optional<LogitComparison> CompareLogitsInOneKernel(const ReferenceLogits&, const at::Tensor&,
                                                        const at::Tensor&, const LogitParts&) {
  return std::nullopt;
}

}  // namespace oscar
