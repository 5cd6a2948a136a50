// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Simulates the cache of an automatic choice: the quantization settings chosen by oscar-calibrate
// --auto. Its tensors come from an artifact or from exported files. A choice with pair scales is
// for a folded checkpoint, whose weights contain the scales (export/fold). Here the scales are
// applied to rows of the original checkpoint.
#pragma once

#include <cstdint>
#include <functional>

#include "export/simulate/cache_method.h"

namespace oscar {

// Makes the cache of a choice. `feedback`: factors of error feedback, as in QuantizedRows;
// undefined: the choice's own factors, if any. `codec`: replaces the choice's quantizer and maps
// rotated rows to the rows that are read back.
LayerCache ChoiceCache(const StoredChoice& choice, int64_t num_kv_heads, const ExactTokens& exact,
                       const CacheSides& feedback = {},
                       const std::function<at::Tensor(const at::Tensor&)>& codec = {});
// Returns a layer's settings in the headline choice, the artifact's main one. Throws InputError if
// the artifact has no choice.
const StoredChoice& ChoiceOf(const MethodContext& context, size_t layer_index);

// Returns the bits per element over all layers for the choices that `choice_of` returns.
CacheCost ChoiceCost(const MethodContext& context, const CacheWindows& windows, int64_t tokens,
                     const std::function<StoredChoice(size_t layer_index)>& choice_of);

}  // namespace oscar
