// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The keys and values of a layer in the types of calib/choose/cache_types.h, as runtimes with 8-
// and 4-bit caches read them. Rows are not rotated, and every token is quantized.
#pragma once

#include "calib/choose/cache_types.h"
#include "export/simulate/rotated_quantizer.h"

namespace oscar {

// Returns the quantizer of keys or values. `largest`: the magnitude that a static scale maps to the
// type's largest number. 0: a scale of 1, which runtimes use for a checkpoint without scales.
RotatedQuantizer TypedSide(CacheType type, float largest);

// The largest magnitudes of a layer's keys and values, to which scales are calibrated.
struct LargestMagnitudes {
  float k = 0, v = 0;
};
RotatedSides TypedSides(const LayerTypes& types, const LargestMagnitudes& largest);

}  // namespace oscar
