// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Moments for contexts that are longer than the calibration text. Shifting a text by `offset`
// positions only rotates the RoPE pairs of its keys and queries. So the moments of a context of any
// length are averages, over offsets, of the moments of short texts. Without this, transforms would
// be fitted to the angles of slow pairs in the first few thousand positions. Relative positions,
// and hence all logits, do not change. Attention across thousands of tokens is not modelled.
#pragma once

#include <cstdint>

#include "calib/moments/layer_moments.h"

namespace oscar {

inline constexpr int64_t kLeastContext = 8192;  // tokens

// Returns the default context of a cache: twice the longest sequence, at least kLeastContext.
int64_t DefaultContext(int64_t longest_sequence);

// Averages query covariance, key second moment and key mean over the offsets 0, length, 2 length,
// ... below `context`. Everything else stays as it is, and so does all if rope is unknown or has no
// rotary dimensions.
LayerMoments SpreadOverPositions(LayerMoments moments, int64_t length, int64_t context);

}  // namespace oscar
