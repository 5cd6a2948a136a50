// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Plain streaming kernels: 16-byte loads, four in flight per thread, CTAs of 256 threads. Every
// word that is read enters a checked sum; otherwise the compiler would drop the loads.
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
