// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// NVFP4 of linalg/float4.h, one value at a time.
#pragma once

#include <cstdint>
#include <span>

#include "linalg/float4.h"

namespace oscar {

// Sign, two exponent bits, one mantissa bit. Saturates; zeros keep their sign.
uint8_t EncodeE2M1(float x);
float DecodeE2M1(uint8_t code);

// Computes the 16 values that a cache with tensor scale `scale` returns for x.
void Nvfp4RoundTrip(std::span<const float> x, float scale, std::span<float> y);

}  // namespace oscar
