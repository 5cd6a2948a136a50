// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calib/job/layer_result.h"
#include "calib/options.h"

namespace oscar {

// Returns a complete result from moments alone, with refitted rotations. There are no tokens, so
// clip ratios are fixed, and there are no thresholds or errors.
LayerResult RefitLayer(LayerMoments moments, const FitOptions& fit, const ClipOptions& clip);

}  // namespace oscar
