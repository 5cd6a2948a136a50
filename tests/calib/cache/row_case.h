// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention rows over an exact and a stored cache, computed with plain double loops. Tests compare
// every implementation of the row comparison with them.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "calib/cache/row_comparison.h"

namespace oscar {

struct RowCase {
  struct Dims {
    int64_t tokens = 500, q_heads = 4, kv_heads = 2, dim = 8, v_dim = 6;
  };
  explicit RowCase(const Dims& dims);
  RowCase() : RowCase(Dims()) {}

  AttentionSpec Spec() const;
  at::Tensor Random(int64_t heads, int64_t head_dim) const {
    return at::randn({dims.tokens, heads, head_dim}, at::kDouble);
  }

  Dims dims;
  at::Tensor q, k, v;  // float64
  StoredCache stored;
  at::Tensor own_queries;  // undefined: q
  ExactSides exact;
  std::optional<int64_t> window;
  double softcap = 0;
  std::vector<float> sinks = {};  // [q_heads] logits of attention sinks; empty: none
};

// Computes the errors of all rows with RowComparison, in float64 on the CPU.
RowErrors ErrorsByTensors(const RowCase& c);

// Compares `errors` with the plain loops at some of the rows. The tolerance is `relative` times the
// expected value, plus `absolute`.
void ExpectRows(const RowCase& c, const RowErrors& errors, double relative, double absolute);

}  // namespace oscar
