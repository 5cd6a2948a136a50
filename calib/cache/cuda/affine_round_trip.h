// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The affine round trip of calib/cache/affine_tensor.h in one kernel, including fitted scales.
// Tensor operations need 15 to 140 kernels. Both round in the same order and give the same bits.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "linalg/affine_codec.h"

namespace oscar {

inline constexpr int64_t kMaxKernelGroup = 512;  // largest group that the kernel supports

// Device pointers of float32 or float64.
template <typename T>
struct AffineRoundTripArguments {
  const T* rows;  // [num_rows, dim]
  T* read;        // [num_rows, dim]; null: not wanted
  int64_t num_rows, dim;
  // The threshold for value i of row r is at [r * threshold_row + i * threshold_column]; null:
  // nothing is clipped.
  const T* thresholds = nullptr;
  int64_t threshold_row = 0, threshold_column = 0;
  T *scales = nullptr, *zeros = nullptr;  // [num_rows, groups], as stored; null: not wanted
};

// Requires that format.quant_group_size divides dim and is at most kMaxKernelGroup.
template <typename T>
cudaError_t LaunchAffineRoundTrip(const AffineRoundTripArguments<T>& arguments,
                                  const AffineFormat& format, cudaStream_t stream);

}  // namespace oscar
