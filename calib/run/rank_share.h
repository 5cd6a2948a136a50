// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shares of documents for ranks or shards. A share is adjacent documents, so that sums and hidden
// states of all ranks follow the order of the documents. It is whole spans, because the way
// documents share the loop's steps decides the last bits of a product. Arithmetic, attention
// included, is shared as evenly as that allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "calib/job/shard_document.h"  // RankShare
#include "capture/model/spec/model_spec.h"

namespace oscar {

// Returns the shares of `ranks` ranks. Throws UsageError if there are fewer spans than ranks.
// `apart`: they are shards, which run no tokens for each other; with experts a share is then whole
// stretches.
std::vector<RankShare> ShareOut(const ModelSpec& spec, const std::vector<int64_t>& lengths,
                                int64_t token_chunk, int ranks, bool apart = false);

}  // namespace oscar
