// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks every CUDA call and launch. A failure is a ResourceError with the call and CUDA's message.
// Trap: faults inside a kernel surface at the next synchronization, not at its launch.
#pragma once

#include <cuda_runtime.h>

namespace oscar {

// Throws ResourceError unless `status` is cudaSuccess.
void CheckCuda(cudaError_t status, const char* what, const char* file, int line);

}  // namespace oscar

#define OSCAR_CUDA_CHECK(call) ::oscar::CheckCuda((call), #call, __FILE__, __LINE__)
// To be used after <<<>>>: reports configuration errors of the launch itself.
#define OSCAR_CUDA_CHECK_LAUNCH(name) \
  ::oscar::CheckCuda(cudaGetLastError(), "launch of " name, __FILE__, __LINE__)
