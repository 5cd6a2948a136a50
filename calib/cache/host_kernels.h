// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of kernel_arguments.h on a CPU, for rows [begin, end) of the arguments. Each is
// compiled for several instruction sets, and the best one that the processor supports runs.
#pragma once

#include <cstdint>

#include "calib/cache/kernel_arguments.h"

namespace oscar {

// Instances: float and double. Values equal the scalar codec's bit for bit. Returns false, with the
// outputs undefined, if a value or threshold is NaN or a value is infinite.
template <typename T>
bool AffineRoundTripOnHost(const AffineRoundTripArguments<T>& arguments, const AffineFormat& format,
                           int64_t begin, int64_t end);
// Sorts the magnitudes of rows [.., dim], ascending. Returns false if a value is NaN.
template <typename T>
bool SortMagnitudesOnHost(const T* rows, T* sorted, int64_t dim, int64_t begin, int64_t end);
template <typename T>
void FeedbackRoundTripOnHost(const FeedbackRoundTripArguments<T>& arguments, int64_t begin,
                             int64_t end);
// Computes the softmax of each row of logits and its logarithm, [rows, columns] each.
// CompareLogitsOnHost computes softmaxes in the same way, so for equal logits it finds no
// difference.
template <typename T>
void SoftmaxOnHost(const LogitComparisonArguments<T>& arguments, T* log, int64_t begin,
                   int64_t end);
template <typename T>
void CompareLogitsOnHost(const LogitComparisonArguments<T>& arguments, int64_t begin, int64_t end);

// Rounds to the nearest bf16 values, ties to even, stored as float32; `to` may be `from`.
void RoundToBf16OnHost(const float* from, float* to, int64_t count);

}  // namespace oscar
