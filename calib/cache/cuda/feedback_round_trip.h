// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The coordinate-by-coordinate part of the affine round trip with error feedback
// (linalg/feedback_codec.h) in one kernel. Tensor operations need ten kernels per coordinate. Both
// round in the same order and give the same bits.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace oscar {

inline constexpr int64_t kMaxFeedbackDim = 512;

// Device pointers of float32 or float64.
template <typename T>
struct FeedbackRoundTripArguments {
  const T* rows;    // [num_rows, dim]
  const T* scales;  // [num_rows, groups], as stored
  const T* zeros;   // [num_rows, groups], as stored
  const T* factor;  // [heads, dim, dim]; row r has head r / rows_of_head % heads
  T* read;          // [num_rows, dim]
  int64_t num_rows, rows_of_head;
  int dim, groups, heads, bits;
};

// Requires that dim is at most kMaxFeedbackDim and that groups divides it.
template <typename T>
cudaError_t LaunchFeedbackRoundTrip(const FeedbackRoundTripArguments<T>& arguments,
                                    cudaStream_t stream);

}  // namespace oscar
