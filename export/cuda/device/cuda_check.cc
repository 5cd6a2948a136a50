// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/device/cuda_check.h"

#include <fmt/format.h>

#include "linalg/base/error.h"

namespace oscar {

void CheckCuda(cudaError_t status, const char* what, const char* file, int line) {
  if (status == cudaSuccess) return;
  throw ResourceError(fmt::format("{}:{}: {}: CUDA error {} ({})", file, line, what,
                                  cudaGetErrorName(status), cudaGetErrorString(status)));
}

}  // namespace oscar
