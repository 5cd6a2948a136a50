// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Multi-head latent attention (MLA; DeepSeek-V2, arXiv 2405.04434, section 2.1) as data. Keys and
// values of all heads are computed from one latent vector per token. The cache holds the latent
// (after its norm) and one position key for all heads. The inner norms have their own epsilon of
// 1e-6, whatever rms_norm_eps says (transformers, DeepseekV3Attention).
#pragma once

#include <cstdint>
#include <vector>

#include "capture/model/spec/linear_spec.h"

namespace oscar {

inline constexpr double kLatentNormEps = 1e-6;

struct LatentSpec {
  int64_t rank = 0;      // size of the latent c_kv
  int64_t nope_dim = 0;  // leading dimensions of a head, without position
  int64_t rope_dim = 0;  // trailing dimensions, with position; one key for all heads
  // Whether the two dimensions of a pair stay adjacent after rotation (DeepSeek-V2). Otherwise the
  // first dimensions of all pairs come before the second ones.
  bool keeps_pairs = false;
  // Queries are q_b(norm(q_a(x))), or q(x) if q_a does not exist.
  LinearSpec q, q_a, q_b;
  NormSpec q_a_norm;
  LinearSpec kv_a;  // [rank + rope_dim, hidden_size]
  NormSpec kv_a_norm;
  LinearSpec kv_b;  // [heads (nope_dim + v_head_dim), rank], per head [key | value]
};

void AppendTensors(const LatentSpec& latent, std::vector<TensorNeed>& needs);

}  // namespace oscar
