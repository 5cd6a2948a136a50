// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The automatic choice (settings made by oscar-calibrate --auto) that a serving runtime loads from
// an artifact: the part that oscar-export writes, and the folded checkpoint to which it may belong.
#pragma once

#include <string>

#include "export/simulate/cache_method.h"
#include "export/simulate/rotated_quantizer.h"
#include "export/simulate/runtime_cache.h"

namespace oscar {

// Returns the name of the choice that a runtime loads from an artifact; empty if there is none. A
// choice for the same checkpoint (folded or original) as that of the headline, the artifact's main
// choice, is preferred to one for the other checkpoint.
std::string ServedChoice(const RuntimeSpec& runtime, const Artifact& artifact);

// Returns a choice's rotations, pair scales and codes as runtimes' loaders make them.
RotatedSides SidesOfChoice(const StoredChoice& choice);

// Returns the choice that `runtime` loads, as its loader makes it from exported files. Throws
// InputError if the artifact has no choice for the runtime.
RotatedSides LoadChoice(const RuntimeSpec& runtime, const MethodContext& context,
                        size_t layer_index);

// Adapts `cache`, which takes bf16 rows of the folded checkpoint, to rows of the original
// checkpoint.
LayerCache BehindFold(LayerCache cache, const at::Tensor& pair_scale);

}  // namespace oscar
