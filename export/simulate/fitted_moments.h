// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The moments to which an artifact's rotations were fitted, and the composition and value target of
// that fit. Methods use them to fit something else to the same statistics.
#pragma once

#include "calib/moments/layer_moments.h"
#include "calib/options.h"
#include "export/simulate/cache_method.h"

namespace oscar {

// Whether the artifact has moments and records how they were used. Imported artifacts may not.
bool HasFit(const MethodContext& context);

// Reads the moments of a layer. In latent attention, one row is key and value, so a joint
// covariance replaces those of queries and values (JointMoments in calib/fit/fit.h).
LayerMoments ArtifactMoments(const MethodContext& context, size_t layer_index);
Composition ArtifactComposition(const Artifact& artifact);
ValueTarget ArtifactValueTarget(const Artifact& artifact);

}  // namespace oscar
