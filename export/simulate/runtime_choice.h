// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The automatic choice of an artifact for a serving runtime: what oscar-export writes of it, and
// the folded checkpoint that it may belong to.
#pragma once

#include <string>

#include "export/simulate/cache_method.h"
#include "export/simulate/rotated_quantizer.h"
#include "export/simulate/runtime_cache.h"

namespace oscar {

// The name of the choice that a runtime loads of an artifact: for a folded checkpoint if the
// headline is for one and the runtime has such a choice, else for the checkpoint as it is. Empty
// where there is none.
std::string ServedChoice(const RuntimeSpec& runtime, const Artifact& artifact);

// Rotations, pair scales and codes of a choice, as loaders make them.
RotatedSides SidesOfChoice(const StoredChoice& choice);

// As the runtime's loader makes them of the exported files; InputError where it cannot.
RotatedSides LoadChoice(const RuntimeSpec& runtime, const MethodContext& context,
                        size_t layer_index);

// `cache`, which is one of the folded checkpoint's bf16 rows, on rows of the original.
LayerCache BehindFold(LayerCache cache, const at::Tensor& pair_scale);

}  // namespace oscar
