// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Describes a tensor [tokens, heads, dim] to Hopper's copy engine (TMA). The encoder is part of the
// driver and is looked up at run time, so that programs also start on machines without a driver.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>

#include <cstdint>

namespace oscar {

// Whether the current device has warpgroup products and tensor copies: compute capability 9.0.
bool HasWgmma();

// Makes a map whose boxes are 64 columns of `box_tokens` tokens of one head, with 128-byte swizzle
// and zeros outside the tensor. `dim` must be a multiple of 8 and `data` 16-byte aligned.
CUtensorMap TensorMapOf(const __nv_bfloat16* data, int64_t tokens, int64_t heads, int64_t dim,
                        int box_tokens);

}  // namespace oscar
