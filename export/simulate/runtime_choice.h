// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The automatic choice of an artifact for a serving runtime: the part that oscar-export writes, and
// the folded checkpoint to which it may belong.
#pragma once

#include <string>

#include "export/simulate/cache_method.h"
#include "export/simulate/rotated_quantizer.h"
#include "export/simulate/runtime_cache.h"

namespace oscar {

// Returns the name of the choice that a runtime loads from an artifact. If the headline is for a
// folded checkpoint and the runtime has such a choice, it is that one, else the choice for the
// original checkpoint. Empty if there is none.
std::string ServedChoice(const RuntimeSpec& runtime, const Artifact& artifact);

// Returns rotations, pair scales and codes of a choice as loaders make them.
RotatedSides SidesOfChoice(const StoredChoice& choice);

// Returns the choice as the runtime's loader makes it from exported files. Throws InputError if the
// loader cannot.
RotatedSides LoadChoice(const RuntimeSpec& runtime, const MethodContext& context,
                        size_t layer_index);

// Adapts `cache`, which takes bf16 rows of the folded checkpoint, to rows of the original one.
LayerCache BehindFold(LayerCache cache, const at::Tensor& pair_scale);

}  // namespace oscar
