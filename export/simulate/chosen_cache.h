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

// `feedback`: factors of error feedback in the place of the choice's own, as QuantizedRows takes
// them; undefined: the choice's, if it has any. `codec`: what is read of turned rows, in the place
// of the choice's codes.
LayerCache ChoiceCache(const StoredChoice& choice, int64_t num_kv_heads, const ExactTokens& exact,
                       const CacheSides& feedback = {},
                       const std::function<at::Tensor(const at::Tensor&)>& codec = {});
// Of the headline. InputError where the artifact holds none.
const StoredChoice& ChoiceOf(const MethodContext& context, size_t layer_index);

// What the choices of all layers cost.
CacheCost ChoiceCost(const MethodContext& context, const CacheWindows& windows, int64_t tokens,
                     const std::function<StoredChoice(size_t layer_index)>& choice_of);

}  // namespace oscar
