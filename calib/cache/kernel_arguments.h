// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Arguments of the kernels in which a search spends most of its time. The kernels run on a CPU
// (host_kernels.h) or on a GPU (gpu_kernels.h); pointers refer to float32 or float64 memory of that
// device with contiguous rows. Separate tensor operations would read and write whole tensors about
// twenty times.
#pragma once

#include <cstdint>

#include "linalg/affine_codec.h"

namespace oscar {

// The logit of a token that is hidden from a row. It is finite, so that differences of logits are
// not NaN. It is so small that the token's score is 0 and that adding another logit does not change
// it.
inline constexpr double kHiddenLogit = -1e30;

// The largest group and the longest row with error feedback that GPU kernels support.
inline constexpr int64_t kMaxGpuGroup = 512, kMaxGpuFeedbackDim = 512;

// Arguments of AffineRoundTrip (affine_tensor.h).
template <typename T>
struct AffineRoundTripArguments {
  const T* rows;  // [num_rows, dim]
  T* read;        // [num_rows, dim]; null: not requested
  int64_t num_rows, dim;
  // The threshold of value i of row r is at [r * threshold_row + i * threshold_column]; null:
  // nothing is clipped.
  const T* thresholds = nullptr;
  int64_t threshold_row = 0, threshold_column = 0;
  T *scales = nullptr, *zeros = nullptr;  // [num_rows, groups], as stored; null: not requested
};

// Arguments of error feedback (linalg/feedback_codec.h) for rows whose scales and zeros are known.
template <typename T>
struct FeedbackRoundTripArguments {
  const T* rows;    // [num_rows, dim]
  const T* scales;  // [num_rows, groups], as stored
  const T* zeros;   // [num_rows, groups], as stored
  const T* factor;  // [heads, dim, dim]; row r belongs to head r / rows_of_head % heads
  T* read;          // [num_rows, dim]
  int64_t num_rows, rows_of_head;
  int dim, groups, heads, bits;
};

// Arguments of CompareLogits (logit_comparison.h). Row r is compared with row r % reference_rows. A
// row has `tokens` logits and, if there are sinks, one more column.
template <typename T>
struct LogitComparisonArguments {
  const T* log_p;             // [reference_rows, columns]
  const T* p;                 // [reference_rows, columns]
  const T* reference_logits;  // [reference_rows, tokens]; null: no logit errors
  const T* logits;            // [rows, tokens]
  // Used on a CPU only; `kept` may be null. Where `kept` is true, a row reads the logit from
  // `exact`, or does not see the token if `exact` is null. Row r uses row r % exact_rows of
  // `exact`, and this row of `kept`:
  //     r / rows_of_sequence % sequences * rows_per_head + r % rows_per_head
  const bool* kept;
  const T* exact;
  int64_t rows_of_sequence, sequences, exact_rows;
  const T* sinks;  // [num_heads] or null; row r belongs to head r / rows_per_head % num_heads
  int64_t rows, reference_rows, tokens, num_heads, rows_per_head;
  // Results; null: not requested.
  T* kl;               // [rows]
  T* scores;           // [rows, columns]
  T* kl_terms;         // [rows, columns]
  T* logit_errors_sq;  // [rows]
};

}  // namespace oscar
