// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The comparison of calib/cache/logit_comparison.h in one kernel that reads every logit once or
// twice. Tensor operations need a dozen kernels and read every logit thirty times.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace oscar {

// Device pointers of float32 or float64, with contiguous rows. Row r is compared with row r %
// reference_rows. A row has `tokens` logits, and one more column if there are sinks.
template <typename T>
struct LogitComparisonArguments {
  const T* log_p;             // [reference_rows, columns]
  const T* p;                 // [reference_rows, columns]
  const T* reference_logits;  // [reference_rows, tokens]; null: no logit errors
  const T* logits;            // [rows, tokens]
  const T* sinks;             // [num_heads] or null; row r has head r / rows_per_head % num_heads
  int64_t rows, reference_rows, tokens, num_heads, rows_per_head;
  // Null pointers: the result is not wanted.
  T* kl;               // [rows]
  T* scores;           // [rows, columns]
  T* kl_terms;         // [rows, columns]
  T* logit_errors_sq;  // [rows]
};

template <typename T>
cudaError_t LaunchLogitComparison(const LogitComparisonArguments<T>& arguments,
                                  cudaStream_t stream);

}  // namespace oscar
