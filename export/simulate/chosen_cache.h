// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The cache of an automatic choice, whether its tensors come from an artifact or from exported
// files. A choice with pair scales belongs to a folded checkpoint, which is simulated here on rows
// of the original.
#pragma once

#include <cstdint>
#include <functional>

#include "export/simulate/cache_method.h"

namespace oscar {

// Makes the cache of a choice. `feedback`: factors of error feedback, as in QuantizedRows, that
// replace the choice's; undefined: the choice's, if it has any. `codec`: maps rotated rows to the
// rows that are read, in place of the choice's codes.
LayerCache ChoiceCache(const StoredChoice& choice, int64_t num_kv_heads, const ExactTokens& exact,
                       const CacheSides& feedback = {},
                       const std::function<at::Tensor(const at::Tensor&)>& codec = {});
// Returns the headline choice. Throws InputError if the artifact has none.
const StoredChoice& ChoiceOf(const MethodContext& context, size_t layer_index);

// Returns the cost of the choices of all layers.
CacheCost ChoiceCost(const MethodContext& context, const CacheWindows& windows, int64_t tokens,
                     const std::function<StoredChoice(size_t layer_index)>& choice_of);

}  // namespace oscar
