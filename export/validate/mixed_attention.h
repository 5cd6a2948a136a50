// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention of one sequence over a cache of which a part is exact and a part has been quantized:
// query i reads key j exactly if j < sink or i - j < recent, and what the quantized cache gives
// back otherwise. Trap: which keys are exact depends on the query, so there is no one cache to
// attend to; each query sees every position once, either exact or stored.
#pragma once

#include <ATen/core/Tensor.h>

#include "capture/model/attention.h"
#include "linalg/attention_kl.h"  // CacheWindows

namespace oscar {

// q [T, num_q_heads, d], k and k_stored [T, num_kv_heads, d], v and v_stored [T, num_kv_heads, dv],
// out [T, num_q_heads, dv]: contiguous, one device, one dtype.
void MixedAttention(const AttentionSpec& spec, const CacheWindows& windows, const at::Tensor& q,
                    const at::Tensor& k, const at::Tensor& v, const at::Tensor& k_stored,
                    const at::Tensor& v_stored, at::Tensor& out);

}  // namespace oscar
