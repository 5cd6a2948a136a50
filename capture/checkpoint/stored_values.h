// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Decodes single little-endian numbers from stored bytes, without LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/checkpoint/dtype.h"

namespace oscar {

// IEEE 754 binary16, NaN and infinity included.
float HalfToFloat(uint16_t half);

// Decodes a value of F32, F16 or BF16.
float LoadFloat(DType dtype, const std::byte* at);

}  // namespace oscar
