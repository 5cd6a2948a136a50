// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows of linalg/llama_q2_codec.h, one value at a time.
#pragma once

#include <cstdint>
#include <span>

#include "linalg/llama_q2_codec.h"

namespace oscar {

// x [dim] to what a reader gets, y [dim], which may be x; codes [dim] unless empty. Throws
// NumericalError for NaN or Inf.
void QuantizeDequantizeLlamaQ2(std::span<const float> x, double clip_ratio,
                               std::span<uint8_t> codes, std::span<float> y);

}  // namespace oscar
