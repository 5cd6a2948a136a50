// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calib/job/layer_result.h"
#include "calib/options.h"

namespace oscar {

// Returns a whole result from moments alone. Rotations are refitted. There are no tokens, so clip
// ratios are fixed, and there are no thresholds and no errors.
LayerResult RefitLayer(LayerMoments moments, const FitOptions& fit, const ClipOptions& clip);

}  // namespace oscar
