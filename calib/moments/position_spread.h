// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Moments for contexts that are longer than the calibration text. Shifting a text by `offset`
// positions only rotates the RoPE pairs of its keys and queries. Moments of a context of any length
// are therefore averages of those of short texts over offsets. Without this, transforms are fitted
// to the angles that slow pairs happen to have in the first few thousand positions. Relative
// positions, and hence all logits, do not change. Attention across thousands of tokens is not
// modelled.
#pragma once

#include <cstdint>

#include "calib/moments/layer_moments.h"

namespace oscar {

inline constexpr int64_t kLeastContext = 8192;  // tokens

// Returns the default context of a cache: twice the longest sequence, at least kLeastContext.
int64_t DefaultContext(int64_t longest_sequence);

// Averages query covariance, key second moment and key mean over the offsets 0, length, 2 length,
// ... below `context`, and keeps everything else. Changes nothing if rope is unknown or has no
// rotary dimensions.
LayerMoments SpreadOverPositions(LayerMoments moments, int64_t length, int64_t context);

}  // namespace oscar
