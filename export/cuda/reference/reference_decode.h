// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Decode attention in float64, one value at a time: the reference for the decode kernel in tests,
// benchmarks and validations. It is slow, so use it on sampled requests.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "export/cuda/decode/decode_attention.h"

namespace oscar {

struct ReferenceDecode {
  std::vector<double> out;     // [num_requests, num_q_heads, v.dim]
  std::vector<double> spread;  // same shape: sum of p |v|, the scale of rounding errors
  std::vector<double> lse;     // [num_requests, num_q_heads], natural log
};

// Allocates memory, runs and synchronizes. Ignores the output pointers in `arguments`.
ReferenceDecode DecodeInFloat64(const DecodeArguments& arguments, int num_q_heads, int max_length,
                                cudaStream_t stream);

}  // namespace oscar
