// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention of one sequence over a cache that is partly exact and partly quantized. The exact
// tokens depend on the query and may differ between keys and values, so there is not one cache for
// all queries. Each query sees every position once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "calib/cache/exact_tokens.h"
#include "capture/model/run/attention.h"

namespace oscar {

// The rows that attention reads of exact tokens (k, v) and of quantized ones (k_stored, v_stored):
// [T, num_kv_heads, d] and [T, num_kv_heads, dv].
struct MixedCache {
  at::Tensor k, v;
  at::Tensor k_stored, v_stored;
};

// Masks of chunks of queries. They are the same for all sequences of an arm and a layer, and a few
// are kept between sequences. All belong to one rule about which tokens are exact.
class MixedMasks {
 public:
  struct Chunk;

  MixedMasks();
  ~MixedMasks();
  MixedMasks(MixedMasks&&) noexcept;

  // Returns the masks of queries [begin, end) of a sequence. `q` gives device and dtype.
  std::shared_ptr<const Chunk> Of(const AttentionSpec& spec, const ExactSides& exact, int64_t begin,
                                  int64_t end, const at::Tensor& q);
  void Clear();

 private:
  std::map<std::pair<int64_t, int64_t>, std::shared_ptr<const Chunk>> chunks_;  // by [begin, end)
  int64_t bytes_ = 0;
};

// Computes attention of q [T, num_q_heads, d] into out [T, num_q_heads, dv]. All tensors are
// contiguous, on one device, of one dtype.
void MixedAttention(const AttentionSpec& spec, const ExactSides& exact, const at::Tensor& q,
                    const MixedCache& cache, MixedMasks& masks, at::Tensor& out);

}  // namespace oscar
