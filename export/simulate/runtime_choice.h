// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The automatic choice of an artifact in a serving runtime: what oscar-export writes of it, and the
// folded checkpoint that it belongs to. Trap: a runtime loads what its files can carry and no
// more; a choice that needs more is not its choice at all, and its arm is not available.
#pragma once

#include "export/simulate/cache_method.h"
#include "export/simulate/rotated_quantizer.h"
#include "export/simulate/runtime_cache.h"

namespace oscar {

// Whether the choices of all layers fit into the files of the runtime.
bool CarriesChoice(const RuntimeSpec& runtime, const MethodContext& context);
bool CarriesChoice(const RuntimeSpec& runtime, const Artifact& artifact);

// As the runtime's loader makes them of the exported files; InputError where it cannot.
struct ChosenSides {
  RotatedQuantizer k, v;  // with their clip ratio
  at::Tensor pair_scale;  // [num_kv_heads, d]; undefined: nothing is folded
};
ChosenSides LoadChoice(const RuntimeSpec& runtime, const MethodContext& context,
                       size_t layer_index);

// `cache`, which is one of the folded checkpoint's bf16 rows, on rows of the original.
LayerCache BehindFold(LayerCache cache, const at::Tensor& pair_scale);

}  // namespace oscar
