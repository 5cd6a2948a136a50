// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of a llama.cpp cache of type q2_0 with OSCAR rotations (branch zhongzhu/llamacpp with
// LLAMA_KV_NO_HADAMARD=1), exactly as the runtime writes them. Per group of 128 values (32 if the
// row is shorter):
//
//   r = x - mean(x)         r = clamp(r, -t, t), t = sort(|r|)[int(ratio n)] for 0 < ratio < 1
//   per 32 values: sigma = rms(r)     q = #{-0.6745, 0, 0.6745 <= r * (1 / sigma)}
//   x^ = half(sigma) * {-0.9816, -0.4528, 0.4528, 0.9816}[q] + half(mean)
//
// The runtime clips after it subtracts the mean, so a percentile clip before lloyd_max_codec.h
// gives other values. Sums here are TreeSums, while the runtime adds in sequence; they are equal up
// to rounding.
#pragma once

#include <cstdint>

namespace oscar {

inline constexpr int64_t kLlamaQ2MeanValues = 128, kLlamaQ2SigmaValues = 32;

// Returns the number of values that share a mean in rows of `dim` values. `dim` is a multiple of 32
// below 128, otherwise a multiple of 128.
constexpr int64_t LlamaQ2GroupSize(int64_t dim) {
  return dim >= kLlamaQ2MeanValues ? kLlamaQ2MeanValues : kLlamaQ2SigmaValues;
}

}  // namespace oscar
