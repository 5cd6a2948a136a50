// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/cache/gpu_kernels.h"

namespace oscar {

template <>
const GpuKernels<float>* GpuKernelsOf() {
  return nullptr;
}
template <>
const GpuKernels<double>* GpuKernelsOf() {
  return nullptr;
}

}  // namespace oscar
