// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention of one sequence over a cache that is partly exact and partly quantized. The exact
// tokens (sinks and recent ones) depend on the query, and may differ between keys and values. So
// there is no single cache for all queries. Each query sees every position once, either exact or
// quantized.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "calib/cache/exact_tokens.h"
#include "capture/model/run/attention.h"

namespace oscar {

// The rows that attention reads: k and v for exact tokens, k_stored and v_stored for quantized
// ones. Keys are [T, num_kv_heads, d], values [T, num_kv_heads, dv].
struct MixedCache {
  at::Tensor k, v;
  at::Tensor k_stored, v_stored;
};

// Masks of chunks of queries, for one rule about which tokens are exact. They are the same for all
// sequences of an arm in a layer, so the first few are kept for the next sequences.
class MixedMasks {
 public:
  struct Chunk;

  MixedMasks();
  ~MixedMasks();
  MixedMasks(MixedMasks&&) noexcept;

  // Returns the masks of queries [begin, end) of a sequence. `q` sets their device and dtype.
  std::shared_ptr<const Chunk> Of(const AttentionSpec& spec, const ExactSides& exact, int64_t begin,
                                  int64_t end, const at::Tensor& q);
  void Clear();

 private:
  std::map<std::pair<int64_t, int64_t>, std::shared_ptr<const Chunk>> chunks_;  // by [begin, end)
  int64_t bytes_ = 0;
};

// Writes the attention of q [T, num_q_heads, d] into out [T, num_q_heads, dv]. All tensors are
// contiguous and have the same device and dtype.
void MixedAttention(const AttentionSpec& spec, const ExactSides& exact, const at::Tensor& q,
                    const MixedCache& cache, MixedMasks& masks, at::Tensor& out);

}  // namespace oscar
