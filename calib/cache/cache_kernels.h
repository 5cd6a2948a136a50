// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Single-kernel versions of operations, on a CPU always, and on a GPU if the CUDA toolkit was there
// to build them. They return nothing for what they do not support; the caller then uses many tensor
// operations instead.
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

// The nearest bf16 values of float32 `x`; on a CPU.
std::optional<at::Tensor> RoundedToBf16InOneKernel(const at::Tensor& x);

// |rows| [..., dim], each row sorted; on a CPU.
std::optional<at::Tensor> SortedMagnitudesInOneKernel(const at::Tensor& rows);

// SoftmaxOf on a CPU, and CompareLogits.
std::optional<LogAndScores> SoftmaxInOneKernel(const CacheLogits& cache, const at::Tensor& sinks);
std::optional<LogitComparison> CompareLogitsInOneKernel(const ReferenceLogits& own,
                                                        const CacheLogits& cache,
                                                        const at::Tensor& sinks,
                                                        const LogitParts& parts);

}  // namespace oscar
