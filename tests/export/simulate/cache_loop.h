// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A cache that lives step by step as its runtime's does, written as plain loops over scalar codecs:
// what `LayerCache` claims to know from the whole sequence at once. A method's loop says what
// happens to tokens at the end of a prefill and of a step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "export/simulate/cache_method.h"

namespace oscar {

// One side, float32. `read` is what a query reads now: token after token, [num_kv_heads * dim]
// each.
class LoopSide {
 public:
  LoopSide(int64_t num_kv_heads, int64_t dim)
      : heads_(static_cast<size_t>(num_kv_heads)), dim_(static_cast<size_t>(dim)) {}

  size_t heads() const { return heads_; }
  size_t dim() const { return dim_; }
  int64_t tokens() const { return static_cast<int64_t>(read.size() / (heads_ * dim_)); }
  float& at(int64_t token, size_t head, size_t channel) {
    return read[(static_cast<size_t>(token) * heads_ + head) * dim_ + channel];
  }
  // `count` neighbouring values of one channel along tokens, or of one token along channels.
  std::vector<float> Channel(int64_t token, int64_t count, size_t head, size_t channel);
  void SetChannel(int64_t token, size_t head, size_t channel, const std::vector<float>& values);

  std::vector<float> read;

 private:
  size_t heads_, dim_;
};

struct CacheLoop {
  LoopSide k, v;
  std::function<void(LoopSide& k, LoopSide& v)> after_prefill;
  std::function<void(LoopSide& k, LoopSide& v)> before_attention;  // of a step; empty: nothing
  std::function<void(LoopSide& k, LoopSide& v)> after_step;
};

// Feeds both rows to the loop, `prefill` tokens at once and the others one by one, and expects
// every decoding query to read what `cache` says, to `tolerance` of the largest value.
void ExpectSameReads(const LayerCache& cache, const CacheSides& rows, int64_t prefill,
                     CacheLoop loop, double tolerance = 0);

// Expects every query of a sequence to read the rows as they came.
void ExpectEverythingExact(const LayerCache& cache, const CacheSides& rows);

// Small whole numbers [tokens, num_kv_heads, dim]: many ties, and Hadamard transforms without
// rounding for dims 16 and 64.
at::Tensor WholeRows(int64_t tokens, int64_t num_kv_heads, int64_t dim, uint64_t seed);

}  // namespace oscar
