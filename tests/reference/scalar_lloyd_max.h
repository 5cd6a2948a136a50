// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar reference of the codecs in linalg/lloyd_max_codec.h.
#pragma once

#include <cstdint>
#include <span>

#include "linalg/lloyd_max_codec.h"
#include "linalg/stored_float.h"

namespace oscar {

// Returns the cell of z: the number of thresholds below it or, if `inclusive`, not above it.
template <typename T>
uint8_t LevelCode(T z, std::span<const T> thresholds, bool inclusive) {
  uint8_t code = 0;
  for (const T threshold : thresholds) code += inclusive ? threshold <= z : threshold < z;
  return code;
}

// Quantizes a row x [dim], which is already rotated and clipped, to codes [dim] and numbers [2 dim
// / scale group]: pairs of deviation and mean or, in the serving form, scale and zero. They are
// rounded to `metadata`, or to fp16 in llama.cpp's form (stored_float.h). One rounding per
// operation, in T; sums are TreeSums.
template <typename T>
void EncodeLloydMax(std::span<const T> x, LloydMaxForm form, StoredFloat metadata,
                    std::span<uint8_t> codes, std::span<T> numbers);
template <typename T>
void DecodeLloydMax(std::span<const uint8_t> codes, std::span<const T> numbers, LloydMaxForm form,
                    std::span<T> y);

}  // namespace oscar
