// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Moments of random heads, for tests that need a layer and no model.
#pragma once

#include <random>

#include "calib/moments/layer_moments.h"

namespace oscar {

// 4 query heads, 2 KV heads, d = 8, dv = 4; the first tokens of equal seeds are equal.
inline LayerMoments SampleMoments(int layer_id, int64_t tokens, unsigned seed) {
  LayerMoments m;
  m.layer_id = layer_id;
  m.num_q_heads = 4;
  m.num_kv_heads = 2;
  m.head_dim = 8;
  m.v_head_dim = 4;
  m.tokens = tokens;
  m.query.assign(2 * 64, 0);
  m.key.assign(2 * 64, 0);
  m.key_sum.assign(2 * 8, 0);
  m.value.assign(2 * 16, 0);
  m.attention_output.assign(2 * 16, 0);
  m.diagonal.assign(2 * 16, 0);
  m.diagonal_weight.assign(2, 0);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0.3, 1);
  const auto add = [&](std::vector<double>& sums, size_t head, const Vector& x, double weight = 1) {
    const auto n = static_cast<size_t>(x.size());
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        sums[(head * n + i) * n + j] +=
            weight * x[static_cast<Eigen::Index>(i)] * x[static_cast<Eigen::Index>(j)];
      }
    }
  };
  const auto draw = [&](Eigen::Index n) {
    Vector x(n);
    for (Eigen::Index i = 0; i < n; ++i) x[i] = normal(random) * static_cast<double>(i + 1);
    return x;
  };
  for (int64_t t = 0; t < tokens; ++t) {
    for (size_t head = 0; head < 2; ++head) {
      for (int group = 0; group < 2; ++group) {
        add(m.query, head, draw(8));
        add(m.attention_output, head, draw(4));
      }
      const Vector k = draw(8), v = draw(4);
      add(m.key, head, k);
      for (size_t i = 0; i < 8; ++i) m.key_sum[head * 8 + i] += k[static_cast<Eigen::Index>(i)];
      add(m.value, head, v);
      add(m.diagonal, head, v, k.squaredNorm());
      m.diagonal_weight[head] += k.squaredNorm();
    }
  }
  return m;
}

}  // namespace oscar
