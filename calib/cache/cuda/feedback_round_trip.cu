// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// One warp processes a row, and each lane holds every 32nd coordinate. Compiled without contraction
// of products and sums: every line rounds once.
#include "calib/cache/cuda/feedback_round_trip.h"
#include "linalg/affine_codec.h"
#include "linalg/feedback_codec.h"

namespace oscar {
namespace {

constexpr int kThreads = 256;

template <typename T, int kPerLane>
__global__ void __launch_bounds__(kThreads)
    FeedbackRoundTrip(const FeedbackRoundTripArguments<T> a, const int max_code, const T share,
                      const T quanta) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int64_t row = (int64_t{blockIdx.x} * kThreads + threadIdx.x) / 32;
  if (row >= a.num_rows) return;  // exits with the whole warp
  const T *x = a.rows + row * a.dim, *scales = a.scales + row * a.groups,
          *zeros = a.zeros + row * a.groups;
  const T* factor = a.factor + row / a.rows_of_head % a.heads * a.dim * a.dim;
  const int group = a.dim / a.groups;
  T widest = scales[0];
  for (int g = 1; g < a.groups; ++g) {
    if (scales[g] > widest || scales[g] != scales[g]) widest = scales[g];
  }
  T y[kPerLane], wider[kPerLane], narrower[kPerLane], scale[kPerLane], zero[kPerLane],
      fed[kPerLane], read[kPerLane];
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const int i = k * 32 + lane;
    if (i >= a.dim) break;
    scale[k] = scales[i / group];
    zero[k] = zeros[i / group];
    y[k] = x[i] * (share / scale[k]) + zero[k] * share;
    const T ratio = widest / scale[k];
    wider[k] = (ratio > T(kMostWider) ? T(kMostWider) : ratio) / quanta;
    narrower[k] = scale[k] / widest * quanta;
    fed[k] = T(0);
  }
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    for (int owner = 0; owner < 32 && k * 32 + owner < a.dim; ++owner) {
      T moved = fed[k] * wider[k] + y[k];
      moved = fabs(moved < T(0) ? T(0) : (moved > T(1) ? T(1) : moved));  // fabs removes -0
      const T code = T(rint(double(moved) * max_code));
      const T limit = T(kMaxFeedback);
      T q = rint((y[k] - code * share) * narrower[k]);
      q = q < -limit ? -limit : (q > limit ? limit : q);
      if (lane == owner) read[k] = (code - zero[k]) * scale[k];
      q = __shfl_sync(0xFFFFFFFFU, q, owner);
      const T* of_row = factor + (k * 32 + owner) * a.dim;
#pragma unroll
      for (int later = k; later < kPerLane; ++later) {
        const int j = later * 32 + lane;
        if (j < a.dim) fed[later] += of_row[j] * q;  // exact: integers times a power of two
      }
    }
  }
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    if (k * 32 + lane < a.dim) a.read[row * a.dim + k * 32 + lane] = read[k];
  }
}

}  // namespace

template <typename T>
cudaError_t LaunchFeedbackRoundTrip(const FeedbackRoundTripArguments<T>& a, cudaStream_t stream) {
  if (a.num_rows == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>((a.num_rows * 32 + kThreads - 1) / kThreads);
  const auto launch = [&](auto kernel) {
    kernel<<<blocks, kThreads, 0, stream>>>(a, MaxCode(a.bits), T(CodeShare(a.bits)),
                                            T(FeedbackQuanta(a.bits)));
  };
  if (a.dim <= 64) {
    launch(FeedbackRoundTrip<T, 2>);
  } else if (a.dim <= 128) {
    launch(FeedbackRoundTrip<T, 4>);
  } else if (a.dim <= 256) {
    launch(FeedbackRoundTrip<T, 8>);
  } else {
    launch(FeedbackRoundTrip<T, 16>);
  }
  return cudaGetLastError();
}

template cudaError_t LaunchFeedbackRoundTrip(const FeedbackRoundTripArguments<float>&,
                                             cudaStream_t);
template cudaError_t LaunchFeedbackRoundTrip(const FeedbackRoundTripArguments<double>&,
                                             cudaStream_t);

}  // namespace oscar
