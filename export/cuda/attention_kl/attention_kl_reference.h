// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Computes the attention-KL of some rows in float64, one dot product at a time, as a reference for
// the kernel in tests and benchmarks. It reads all keys of a row several times, so use it on
// samples.
#pragma once

#include <cstdint>
#include <vector>

#include "export/cuda/attention_kl/attention_kl.h"

namespace oscar {

struct AttentionKlRow {
  double kl, lse, lse_hat, logit_error_sq, logit_sq;
  double output_error_sq, output_sq;  // 0 without outputs
};

struct AttentionKlSample {
  int q_head = 0;
  int64_t position = 0;  // position of the query row
};

// Allocates memory, runs the reference and synchronizes. Ignores inputs.positions.
std::vector<AttentionKlRow> AttentionKlInFloat64(const AttentionKlShape& shape,
                                                 const AttentionKlOptions& options,
                                                 const AttentionKlInputs& inputs,
                                                 const std::vector<AttentionKlSample>& samples);

// Sets out[i] = base[i] + scale * normal(seed, i) on the default stream; a null `base` counts as 0.
// Both are in device memory.
void FillAroundNormal(__nv_bfloat16* out, const __nv_bfloat16* base, size_t size, double scale,
                      uint64_t seed);

}  // namespace oscar
