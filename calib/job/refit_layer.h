// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calib/job/layer_result.h"
#include "calib/options.h"

namespace oscar {

// Returns the result for a layer of which only moments are known, with refitted rotations. Clip
// ratios are fixed, and there are no thresholds or errors, because there are no tokens to measure.
LayerResult RefitLayer(LayerMoments moments, const FitOptions& fit, const ClipOptions& clip);

}  // namespace oscar
