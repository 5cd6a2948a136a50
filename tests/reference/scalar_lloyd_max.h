// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The codecs of linalg/lloyd_max_codec.h, one value at a time.
#pragma once

#include <cstdint>
#include <span>

#include "linalg/lloyd_max_codec.h"
#include "linalg/stored_float.h"

namespace oscar {

// The cell of z: how many thresholds lie below it, or at it where `inclusive`.
template <typename T>
uint8_t LevelCode(T z, std::span<const T> thresholds, bool inclusive) {
  uint8_t code = 0;
  for (const T threshold : thresholds) code += inclusive ? threshold <= z : threshold < z;
  return code;
}

// Quantizes a row x [dim], rotated and clipped before: codes [dim], numbers [2 dim / scale group]
// in pairs: deviation and mean, of the serving form scale and zero; rounded to `metadata`, of
// llama.cpp's to fp16 (stored_float.h). One rounding per operation in T, sums as TreeSum.
template <typename T>
void EncodeLloydMax(std::span<const T> x, LloydMaxForm form, StoredFloat metadata,
                    std::span<uint8_t> codes, std::span<T> numbers);
template <typename T>
void DecodeLloydMax(std::span<const uint8_t> codes, std::span<const T> numbers, LloydMaxForm form,
                    std::span<T> y);

}  // namespace oscar
