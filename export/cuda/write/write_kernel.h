// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Launches WritePrefill and FlushWindows after their checks (write_cache.cc).
#pragma once

#include <cuda_runtime.h>

#include "export/cuda/write/write_arguments.h"

namespace oscar {

void LaunchWrite(const WriteArguments& a, cudaStream_t stream);

}  // namespace oscar
