// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar reference of NVFP4 (linalg/float4.h).
#pragma once

#include <cstdint>
#include <span>

#include "linalg/float4.h"

namespace oscar {

// E2M1: sign, two exponent bits, one mantissa bit. Encoding saturates; zeros keep their sign.
uint8_t EncodeE2M1(float x);
float DecodeE2M1(uint8_t code);

// Computes the 16 values that a cache with tensor scale `scale` returns for the 16 values x.
void Nvfp4RoundTrip(std::span<const float> x, float scale, std::span<float> y);

}  // namespace oscar
