// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What the copy engine of Hopper needs to know of a tensor [tokens, heads, dim]. The encoder
// belongs to the driver; it is found at run time, so that programs start on machines without one.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>

#include <cstdint>

namespace oscar {

// Whether the current device has warpgroup products and tensor copies: compute capability 9.0.
bool HasWgmma();

// Boxes of `box_tokens` tokens of one head, 64 columns, 128-byte swizzle; zeros outside. dim is a
// multiple of 8 and `data` 16-byte aligned.
CUtensorMap TensorMapOf(const __nv_bfloat16* data, int64_t tokens, int64_t heads, int64_t dim,
                        int box_tokens);

}  // namespace oscar
