// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Operations that run as one or two kernels: always on a CPU, and on a GPU if oscar was built with
// the CUDA toolkit. For unsupported arguments they return nothing, and the caller uses many tensor
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

// Returns the nearest bf16 values of float32 `x`; on a CPU only.
std::optional<at::Tensor> RoundedToBf16InOneKernel(const at::Tensor& x);

// Returns |rows| [..., dim], each row sorted; on a CPU only.
std::optional<at::Tensor> SortedMagnitudesInOneKernel(const at::Tensor& rows);

// SoftmaxOf (on a CPU only) and CompareLogits of logit_comparison.h.
std::optional<LogAndScores> SoftmaxInOneKernel(const CacheLogits& cache, const at::Tensor& sinks);
std::optional<LogitComparison> CompareLogitsInOneKernel(const ReferenceLogits& own,
                                                        const CacheLogits& cache,
                                                        const at::Tensor& sinks,
                                                        const LogitParts& parts);

}  // namespace oscar
