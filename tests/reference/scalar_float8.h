// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar reference of the floats in linalg/float8.h.
#pragma once

#include <cstdint>

#include "linalg/float8.h"

namespace oscar {

// Encoding saturates, also for infinities. NaN becomes the type's NaN; zeros keep their sign.
uint8_t EncodeFloat8(float x, Float8Type type);
float DecodeFloat8(uint8_t code, Float8Type type);

// Returns the value that a cache with this scale returns for x.
float Float8RoundTrip(float x, float scale, Float8Type type);

}  // namespace oscar
