// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calib/job/layer_result.h"
#include "calib/options.h"

namespace oscar {

// A whole result from moments alone: rotations refitted; clip ratios fixed, since there are no
// tokens to search on; no thresholds and no errors for the same reason.
LayerResult RefitLayer(LayerMoments moments, const FitOptions& fit, const ClipOptions& clip);

}  // namespace oscar
