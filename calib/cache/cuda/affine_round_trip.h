// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The affine round trip of calib/cache/affine_tensor.h in one kernel, including fitted scales.
// Without this kernel, it takes 15 to 140 kernels of tensor operations. Both round in the same
// order and give the same bits.
#pragma once

#include <cuda_runtime.h>

#include "calib/cache/kernel_arguments.h"

namespace oscar {

// Requires that format.quant_group_size divides dim and is at most kMaxGpuGroup.
template <typename T>
cudaError_t LaunchAffineRoundTrip(const AffineRoundTripArguments<T>& arguments,
                                  const AffineFormat& format, cudaStream_t stream);

}  // namespace oscar
