// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Which documents each rank or shard runs: neighbours, so that sums and hidden states of all ranks
// follow each other in the order of the documents, and whole spans, because how documents share the
// steps of the loop decides the last bits of a product. As even as that allows in arithmetic,
// attention included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "capture/model/spec/model_spec.h"

namespace oscar {

struct RankShare {
  size_t first_sequence = 0, num_sequences = 0;
  int64_t first_token = 0, num_tokens = 0;
  double work = 0;  // DocumentWork of all of them

  bool Has(size_t sequence) const {
    return sequence >= first_sequence && sequence - first_sequence < num_sequences;
  }
};

// The shares of `ranks` ranks. UsageError where there are fewer spans than ranks. `apart`: they are
// shards, which run no tokens for each other, and where there are experts a share is whole
// stretches.
std::vector<RankShare> ShareOut(const ModelSpec& spec, const std::vector<int64_t>& lengths,
                                int64_t token_chunk, int ranks, bool apart = false);

}  // namespace oscar
