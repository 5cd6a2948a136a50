// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Decodes single little-endian numbers from stored bytes, without LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/checkpoint/dtype.h"

namespace oscar {

// Converts IEEE 754 binary16, including NaN and infinity.
float HalfToFloat(uint16_t half);

// Decodes one F32, F16 or BF16 value.
float LoadFloat(DType dtype, const std::byte* at);

}  // namespace oscar
