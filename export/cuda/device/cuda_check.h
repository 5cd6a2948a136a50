// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks every CUDA call and launch. A failure throws a ResourceError that names the call and has
// CUDA's message. Trap: faults inside a kernel surface at the next synchronization, not at its
// launch.
#pragma once

#include <cuda_runtime.h>

namespace oscar {

// Throws ResourceError unless `status` is cudaSuccess.
void CheckCuda(cudaError_t status, const char* what, const char* file, int line);

}  // namespace oscar

#define OSCAR_CUDA_CHECK(call) ::oscar::CheckCuda((call), #call, __FILE__, __LINE__)
// For use after <<<>>>: throws for errors of the launch itself.
#define OSCAR_CUDA_CHECK_LAUNCH(name) \
  ::oscar::CheckCuda(cudaGetLastError(), "launch of " name, __FILE__, __LINE__)
