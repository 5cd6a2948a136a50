// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Moments of random heads, for tests that need a layer but no model.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>

#include "calib/moments/layer_moments.h"

namespace oscar {

// Returns moments with 4 query heads and 2 KV heads. With equal seeds, a shorter sample is a prefix
// of a longer one.
inline LayerMoments SampleMoments(int layer_id, int64_t tokens, unsigned seed, int64_t d = 8,
                                  int64_t dv = 4) {
  LayerMoments m;
  m.layer_id = layer_id;
  m.num_q_heads = 4;
  m.num_kv_heads = 2;
  m.head_dim = d;
  m.v_head_dim = dv;
  m.tokens = tokens;
  const auto k_size = static_cast<size_t>(d), v_size = static_cast<size_t>(dv);
  m.query.assign(2 * k_size * k_size, 0);
  m.key.assign(2 * k_size * k_size, 0);
  m.key_sum.assign(2 * k_size, 0);
  m.value.assign(2 * v_size * v_size, 0);
  m.attention_output.assign(2 * v_size * v_size, 0);
  m.diagonal.assign(2 * v_size * v_size, 0);
  m.diagonal_weight.assign(2, 0);
  m.key_abs_max.assign(2 * k_size, 0);
  m.value_abs_max.assign(2 * v_size, 0);
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
        add(m.query, head, draw(d));
        add(m.attention_output, head, draw(dv));
      }
      const Vector k = draw(d), v = draw(dv);
      add(m.key, head, k);
      for (size_t i = 0; i < k_size; ++i)
        m.key_sum[head * k_size + i] += k[static_cast<Eigen::Index>(i)];
      const auto widen = [&](std::vector<double>& maxima, const Vector& x) {
        for (size_t i = 0, n = static_cast<size_t>(x.size()); i < n; ++i)
          maxima[head * n + i] =
              std::max(maxima[head * n + i], std::abs(x[static_cast<Eigen::Index>(i)]));
      };
      widen(m.key_abs_max, k);
      widen(m.value_abs_max, v);
      add(m.value, head, v);
      add(m.diagonal, head, v, k.squaredNorm());
      m.diagonal_weight[head] += k.squaredNorm();
    }
  }
  return m;
}

}  // namespace oscar
