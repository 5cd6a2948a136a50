// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The cache of an automatic choice, wherever its tensors come from: an artifact, or the files that
// were exported from one. A choice with pair scales is that of a folded checkpoint, which is
// simulated here on the rows of the original.
#pragma once

#include <cstdint>
#include <functional>

#include "export/simulate/cache_method.h"

namespace oscar {

// `feedback`: factors of error feedback, as QuantizedRows takes them, which replace those of the
// choice; undefined: the choice's, if it has any. `codec`: maps turned rows to the rows that are
// read, which replaces the choice's codes.
LayerCache ChoiceCache(const StoredChoice& choice, int64_t num_kv_heads, const ExactTokens& exact,
                       const CacheSides& feedback = {},
                       const std::function<at::Tensor(const at::Tensor&)>& codec = {});
// Returns the headline's choice; throws InputError if the artifact holds none.
const StoredChoice& ChoiceOf(const MethodContext& context, size_t layer_index);

// The cost of the choices of all layers.
CacheCost ChoiceCost(const MethodContext& context, const CacheWindows& windows, int64_t tokens,
                     const std::function<StoredChoice(size_t layer_index)>& choice_of);

}  // namespace oscar
