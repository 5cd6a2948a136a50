// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Inner loops of the host's operators, compiled for several vector instruction sets. Products of
// bf16 numbers are exact in float32, and every sum has a fixed order, so all sets give the same
// bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "linalg/stored_float.h"

namespace oscar {

inline float FloatOfBits(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
// Rounds to the nearest value; NaN stays NaN.
inline uint16_t BitsOfFloat(float x) {
  if (std::isnan(x)) return 0x7FC0;
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(NearestBFloat16(x)) >> 16);
}

// Computes y = x M, adding terms from the first coordinate to the last. x, y: [dim]; M: [dim, dim]
// row-major.
void RowTimesMatrix(const float* x, const float* matrix, int dim, float* y);

// Computes scores[t] = sum_d q[d] codes[d][t] over `count` dims (a multiple of 8), in a fixed
// order. codes: [count, 16]; scores: [16].
void CodeScores(const float* q, const float* codes, int count, float* scores);
// Adds sum_t weights[t] codes[t][d] over 16 tokens to out[d]. codes: [16, stride]; out: [count].
void AddWeightedCodes(const float* weights, const float* codes, int stride, int count, float* out);

float Dot(const float* x, const float* y, int count);
void AddScaled(float weight, const float* x, int count, float* y);
void Scale(float factor, int count, float* y);
void FloatsOfBytes(const uint8_t* bytes, int count, float* out);
void FloatsOfBits(const uint16_t* bits, int count, float* out);

}  // namespace oscar
