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

#include "calib/job/shard_document.h"  // RankShare
#include "capture/model/spec/model_spec.h"

namespace oscar {

// The shares of `ranks` ranks. UsageError where there are fewer spans than ranks. `apart`: they are
// shards, which run no tokens for each other, and where there are experts a share is whole
// stretches.
std::vector<RankShare> ShareOut(const ModelSpec& spec, const std::vector<int64_t>& lengths,
                                int64_t token_chunk, int ranks, bool apart = false);

}  // namespace oscar
