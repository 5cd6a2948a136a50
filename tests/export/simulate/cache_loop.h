// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A cache that is updated step by step, as in a runtime, with plain loops over scalar codecs. Tests
// compare it with `LayerCache`, which computes the same reads from the whole sequence at once. The
// loop of a method says what happens to tokens after the prefill and in each step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "export/simulate/cache_method.h"

namespace oscar {

// The keys or the values of a cache. `read` [tokens, num_kv_heads, dim] holds the rows that a query
// reads now.
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
  // Returns the values of `count` consecutive tokens in one channel of a head.
  std::vector<float> Channel(int64_t token, int64_t count, size_t head, size_t channel);
  void SetChannel(int64_t token, size_t head, size_t channel, const std::vector<float>& values);

  std::vector<float> read;

 private:
  size_t heads_, dim_;
};

struct CacheLoop {
  LoopSide k, v;
  std::function<void(LoopSide& k, LoopSide& v)> after_prefill;
  std::function<void(LoopSide& k, LoopSide& v)> before_attention;  // in a step; may be empty
  std::function<void(LoopSide& k, LoopSide& v)> after_step;
};

// Feeds the rows to the loop: `prefill` tokens at once, the others one by one. Expects every
// decoding query to read the same rows as from `cache`, within `tolerance` times the largest value.
void ExpectSameReads(const LayerCache& cache, const CacheSides& rows, int64_t prefill,
                     CacheLoop loop, double tolerance = 0);

// Expects every query of a sequence to read the original rows.
void ExpectEverythingExact(const LayerCache& cache, const CacheSides& rows);

// Returns random whole numbers [tokens, num_kv_heads, dim]. They have many ties, and their Hadamard
// transforms are exact for dims 16 and 64.
at::Tensor WholeRows(int64_t tokens, int64_t num_kv_heads, int64_t dim, uint64_t seed);

}  // namespace oscar
