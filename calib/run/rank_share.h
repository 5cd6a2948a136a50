// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Divides documents among ranks or shards. A share consists of adjacent documents, so that the sums
// and hidden states of all ranks are in document order. It consists of whole spans
// (token_layout.h), because the grouping of documents into the loop's steps decides the last bits
// of a product. Within these limits, arithmetic (including attention) is divided as evenly as
// possible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "calib/job/shard_document.h"  // RankShare
#include "capture/model/spec/model_spec.h"

namespace oscar {

// Returns the shares of `ranks` ranks. Throws UsageError if there are fewer spans than ranks.
// `apart`: the shares are for shards, which cannot compute experts for each other. For a model with
// experts, a share then consists of whole stretches (StretchOf in token_layout.h).
std::vector<RankShare> ShareOut(const ModelSpec& spec, const std::vector<int64_t>& lengths,
                                int64_t token_chunk, int ranks, bool apart = false);

}  // namespace oscar
