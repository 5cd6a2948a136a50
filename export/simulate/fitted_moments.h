// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The moments to which an artifact's rotations were fitted, and how they were used. For methods
// that fit something else to the same statistics.
#pragma once

#include "calib/moments/layer_moments.h"
#include "calib/options.h"
#include "export/simulate/cache_method.h"

namespace oscar {

// Whether the artifact has moments and says how they were used. Imported files may not.
bool HasFit(const MethodContext& context);

// Reads the moments of a layer. Latent attention has one row for keys and values, so the joint
// target replaces each side's covariance (calib/fit/fit.h, JointMoments).
LayerMoments ArtifactMoments(const MethodContext& context, size_t layer_index);
Composition ArtifactComposition(const Artifact& artifact);
ValueTarget ArtifactValueTarget(const Artifact& artifact);

}  // namespace oscar
