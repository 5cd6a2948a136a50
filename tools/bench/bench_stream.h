// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Plain streaming kernels. Each thread has four 16-byte loads in flight, and a CTA has 256 threads.
// All words that are read enter a sum, so that the compiler keeps the loads. The sum is checked.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace oscar {

// Sets word i (32 bits) of data [size] to (i + set) * kStreamFactor, mod 2^32.
inline constexpr uint32_t kStreamFactor = 2654435761u;
void LaunchFill(uint4* data, int64_t size, uint32_t set, int ctas, cudaStream_t stream);

// sums [ctas]: the sum of the words that each CTA read, mod 2^32.
void LaunchRead(const uint4* data, int64_t size, uint32_t* sums, int ctas, cudaStream_t stream);

}  // namespace oscar
