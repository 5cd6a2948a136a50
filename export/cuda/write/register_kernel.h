// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Launches the write kernel for dims that fit in registers (64 to 256, multiples of 64);
// WriteKernel serves other dims. A launch writes keys and values together if both use the same
// instance, otherwise only one of them.
#pragma once

#include <cuda_runtime.h>

#include "export/cuda/write/write_arguments.h"

namespace oscar {

constexpr int RegisterWarps(int dim) { return dim <= 192 ? 4 : 8; }
// Bytes of shared memory per CTA: R, 64 rows for every four warps, and a page number per warp.
constexpr int RegisterSharedBytes(int dim, bool rotated) {
  return (rotated ? 2 * dim * dim : 0) + RegisterWarps(dim) / 4 * 128 * dim +
         4 * RegisterWarps(dim);
}
constexpr bool FitsRegisters(int dim, bool rotated, int shared_bytes) {
  return dim % 64 == 0 && dim <= 256 && RegisterSharedBytes(dim, rotated) <= shared_bytes;
}

// Writes sides [first_side, first_side + num_sides), where 0 is keys and 1 is values. Does a flush
// if a.quantized_before is set, otherwise a prefill.
void LaunchRegisterWrite64(const WriteArguments& a, int first_side, int num_sides,
                           cudaStream_t stream);
void LaunchRegisterWrite128(const WriteArguments& a, int first_side, int num_sides,
                            cudaStream_t stream);
void LaunchRegisterWrite192(const WriteArguments& a, int first_side, int num_sides,
                            cudaStream_t stream);
void LaunchRegisterWrite256(const WriteArguments& a, int first_side, int num_sides,
                            cudaStream_t stream);

// Writes rotated prefills of dim 128 and two bits on Hopper. A row must be one group with error
// feedback, or have groups of 32 with fitted byte scales, with or without error feedback.
void LaunchRowPrefill128(const WriteArguments& a, int first_side, int num_sides,
                         cudaStream_t stream);

}  // namespace oscar
