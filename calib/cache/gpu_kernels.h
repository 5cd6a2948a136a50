// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include "calib/cache/kernel_arguments.h"

namespace oscar {

// Launchers of the kernels of kernel_arguments.h on the current stream of a GPU.
template <typename T>
struct GpuKernels {
  void (*round_trip)(const AffineRoundTripArguments<T>&, const AffineFormat&, c10::Device);
  void (*feedback)(const FeedbackRoundTripArguments<T>&, c10::Device);
  void (*compare)(const LogitComparisonArguments<T>&, c10::Device);
};

// Returns null in a build without the CUDA toolkit. Instances: float and double.
template <typename T>
const GpuKernels<T>* GpuKernelsOf();

}  // namespace oscar
