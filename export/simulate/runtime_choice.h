// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The automatic choice of an artifact for a serving runtime: the part that oscar-export writes, and
// the folded checkpoint that it may belong to.
#pragma once

#include <string>

#include "export/simulate/cache_method.h"
#include "export/simulate/rotated_quantizer.h"
#include "export/simulate/runtime_cache.h"

namespace oscar {

// The name of the choice that a runtime loads from an artifact: that for a folded checkpoint if the
// headline is for one and the runtime has such a choice, else that for the original checkpoint.
// Empty if there is none.
std::string ServedChoice(const RuntimeSpec& runtime, const Artifact& artifact);

// Rotations, pair scales and codes of a choice, as loaders make them.
RotatedSides SidesOfChoice(const StoredChoice& choice);

// The choice as the runtime's loader makes it from exported files; InputError if it cannot.
RotatedSides LoadChoice(const RuntimeSpec& runtime, const MethodContext& context,
                        size_t layer_index);

// Applies `cache`, which takes the folded checkpoint's bf16 rows, to rows of the original.
LayerCache BehindFold(LayerCache cache, const at::Tensor& pair_scale);

}  // namespace oscar
