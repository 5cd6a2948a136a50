// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Moments of longer contexts than were calibrated on. Keys and queries of a text that stands
// `offset` tokens further back differ only by a rotation of their RoPE pairs. The moments of a
// context of any length are therefore those of short texts, averaged over offsets. Without this,
// transforms are fitted to the angles that slow pairs happen to have in the first few thousand
// positions. Relative positions, and with them every logit, stay as they are. What text says about
// tokens thousands back is not included.
#pragma once

#include <cstdint>

#include "calib/moments/layer_moments.h"

namespace oscar {

inline constexpr int64_t kLeastContext = 8192;  // tokens

// Returns the default context of a cache: twice the longest sequence, at least kLeastContext.
int64_t DefaultContext(int64_t longest_sequence);

// Averages query covariance, key second moment and key mean over the offsets 0, length, 2 length,
// ... below `context`, and leaves everything else. A rope without rotary dimensions, or an unknown
// one, changes nothing.
LayerMoments SpreadOverPositions(LayerMoments moments, int64_t length, int64_t context);

}  // namespace oscar
