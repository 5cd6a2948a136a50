// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shares of documents for ranks or shards. A share consists of adjacent documents, so that the sums
// and hidden states of all ranks are in document order. It consists of whole spans
// (token_layout.h), because the grouping of documents into the loop's steps decides the last bits
// of a product. Otherwise, arithmetic (including attention) is shared as evenly as possible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "calib/job/shard_document.h"  // RankShare
#include "capture/model/spec/model_spec.h"

namespace oscar {

// Returns the shares of `ranks` ranks. Throws UsageError if there are fewer spans than ranks.
// `apart`: the shares are for shards, which compute no experts for each other, so shares of a model
// with experts are whole stretches.
std::vector<RankShare> ShareOut(const ModelSpec& spec, const std::vector<int64_t>& lengths,
                                int64_t token_chunk, int ranks, bool apart = false);

}  // namespace oscar
