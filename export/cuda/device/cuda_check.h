// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every CUDA call and launch is checked; a failure is a ResourceError with the call and CUDA's own
// words. Trap: a kernel's own faults surface at the next synchronization, not at its launch.
#pragma once

#include <cuda_runtime.h>

namespace oscar {

// Throws ResourceError unless `status` is cudaSuccess.
void CheckCuda(cudaError_t status, const char* what, const char* file, int line);

}  // namespace oscar

#define OSCAR_CUDA_CHECK(call) ::oscar::CheckCuda((call), #call, __FILE__, __LINE__)
// After <<<>>>: configuration errors of the launch itself.
#define OSCAR_CUDA_CHECK_LAUNCH(name) \
  ::oscar::CheckCuda(cudaGetLastError(), "launch of " name, __FILE__, __LINE__)
