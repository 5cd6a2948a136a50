// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention of one sequence over a cache of which a part is exact and a part has been quantized.
// Which tokens are exact depends on the query, and keys and values may differ in it, so there
// is no one cache to attend to; each query sees every position once.
#pragma once

#include <ATen/core/Tensor.h>

#include "calib/cache/exact_tokens.h"
#include "capture/model/attention.h"

namespace oscar {

// What attention reads of tokens that are exact, and of those that are not: [T, num_kv_heads, d]
// and [T, num_kv_heads, dv].
struct MixedCache {
  at::Tensor k, v;
  at::Tensor k_stored, v_stored;
};

// q [T, num_q_heads, d], out [T, num_q_heads, dv]; everything contiguous, on one device, of one
// dtype.
void MixedAttention(const AttentionSpec& spec, const ExactSides& exact, const at::Tensor& q,
                    const MixedCache& cache, at::Tensor& out);

}  // namespace oscar
