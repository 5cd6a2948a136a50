// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Describes the machine on which a benchmark runs. nvidia-smi reports the clocks, both idle and
// while the device copies memory. Without nvidia-smi they are left out.
#pragma once

#include "capture/files/strict_json.h"

namespace oscar {

// Throws ResourceError with CUDA's own message if there is no CUDA device.
void CheckCudaDevice();

// Describes the current device: {"gpu", "compute_capability", "sms", "l2_bytes", "memory_bytes",
// "cuda_driver", "cuda_runtime", and from nvidia-smi "driver", "idle", "loaded"}.
Json DescribeBenchMachine();

int64_t L2Bytes();  // L2 cache of the current device

}  // namespace oscar
