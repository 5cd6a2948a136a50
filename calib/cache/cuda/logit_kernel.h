// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The comparison of calib/cache/logit_comparison.h in one kernel that reads every logit twice.
// Without this kernel, it takes a dozen kernels of tensor operations, which read every logit thirty
// times.
#pragma once

#include <cuda_runtime.h>

#include "calib/cache/kernel_arguments.h"

namespace oscar {

template <typename T>
cudaError_t LaunchLogitComparison(const LogitComparisonArguments<T>& arguments,
                                  cudaStream_t stream);

}  // namespace oscar
