// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/cache/gpu_kernels.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "calib/cache/cuda/affine_round_trip.h"
#include "calib/cache/cuda/feedback_round_trip.h"
#include "calib/cache/cuda/logit_kernel.h"

namespace oscar {
namespace {

template <typename Launch>
void On(c10::Device device, const Launch& launch) {
  const c10::cuda::CUDAGuard guard(device);
  C10_CUDA_CHECK(launch(c10::cuda::getCurrentCUDAStream(device.index()).stream()));
}

}  // namespace

template <typename T>
const GpuKernels<T>* GpuKernelsOf() {
  static constexpr GpuKernels<T> kernels = {
      [](const AffineRoundTripArguments<T>& arguments, const AffineFormat& format,
         c10::Device device) {
        On(device, [&](cudaStream_t stream) {
          return LaunchAffineRoundTrip<T>(arguments, format, stream);
        });
      },
      [](const FeedbackRoundTripArguments<T>& arguments, c10::Device device) {
        On(device,
           [&](cudaStream_t stream) { return LaunchFeedbackRoundTrip<T>(arguments, stream); });
      },
      [](const LogitComparisonArguments<T>& arguments, c10::Device device) {
        On(device,
           [&](cudaStream_t stream) { return LaunchLogitComparison<T>(arguments, stream); });
      }};
  return &kernels;
}

template const GpuKernels<float>* GpuKernelsOf();
template const GpuKernels<double>* GpuKernelsOf();

}  // namespace oscar
