// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The coordinate-by-coordinate part of the affine round trip with error feedback
// (linalg/feedback_codec.h) in one kernel. Without this kernel, it takes ten kernels of tensor
// operations per coordinate. Both round in the same order and give the same bits.
#pragma once

#include <cuda_runtime.h>

#include "calib/cache/kernel_arguments.h"

namespace oscar {

// Requires that dim is at most kMaxGpuFeedbackDim and that groups divides it.
template <typename T>
cudaError_t LaunchFeedbackRoundTrip(const FeedbackRoundTripArguments<T>& arguments,
                                    cudaStream_t stream);

}  // namespace oscar
