// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of attention over an exact and a stored cache, by a plain double loop: what every form of
// the comparison of rows is held against.
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
  std::vector<float> sinks = {};  // of the query heads
};

// Computes the errors of all rows by the tensors of RowComparison in float64, on the CPU.
RowErrors ErrorsByTensors(const RowCase& c);

// Errors of all rows against the loop, at some of them: `relative`, and so much beside it.
void ExpectRows(const RowCase& c, const RowErrors& errors, double relative, double absolute);

}  // namespace oscar
