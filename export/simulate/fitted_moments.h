// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What an artifact's rotations were fitted to and how: for methods that fit something else to the
// same statistics.
#pragma once

#include "calib/moments/layer_moments.h"
#include "calib/options.h"
#include "export/simulate/cache_method.h"

namespace oscar {

// Whether the artifact has moments and says how they were used; an imported file may not.
bool HasFit(const MethodContext& context);

// Of latent attention, whose keys and values are one row, with what both sides are fitted to as the
// covariances of each (calib/fit/fit.h, JointMoments).
LayerMoments ArtifactMoments(const MethodContext& context, size_t layer_index);
Composition ArtifactComposition(const Artifact& artifact);
ValueTarget ArtifactValueTarget(const Artifact& artifact);

}  // namespace oscar
