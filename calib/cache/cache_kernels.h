// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Single-kernel versions of operations on GPU tensors, if the CUDA toolkit was available at build
// time. Otherwise they return nothing, and the caller uses many tensor operations instead.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "calib/cache/logit_comparison.h"
#include "linalg/affine_codec.h"

namespace oscar {

// Equals AffineRoundTrip of affine_tensor.h bit for bit.
std::optional<at::Tensor> AffineRoundTripInOneKernel(const at::Tensor& rows,
                                                     const at::Tensor& thresholds,
                                                     const AffineFormat& format);

// Equals AffineRoundTripWithFeedback of affine_tensor.h bit for bit.
std::optional<at::Tensor> FeedbackRoundTripInTwoKernels(const at::Tensor& rows,
                                                        const at::Tensor& thresholds,
                                                        const AffineFormat& format,
                                                        const at::Tensor& factor);

std::optional<LogitComparison> CompareLogitsInOneKernel(const ReferenceLogits& own,
                                                        const at::Tensor& logits,
                                                        const at::Tensor& sinks,
                                                        const LogitParts& parts);

}  // namespace oscar
