// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The artifact's rotations and clip ratios for both sides of a cache, without a quantizer.
#pragma once

#include <utility>

#include "export/simulate/cache_method.h"
#include "export/simulate/rotated_quantizer.h"

namespace oscar {

enum class RotationGrouping {
  kOwn,     // as the artifact was fitted: per head, or shared if it has only that
  kShared,  // one for all KV heads of a layer
};

// Returns keys and values of a layer: the rotation, and the artifact's clip ratio if the arm clips
// without naming one. Throws InputError if the artifact has no such rotation.
RotatedSides StoredRotations(const MethodContext& context, size_t layer_index,
                             RotationGrouping grouping, const ArmOptions& options);

// CacheMethod::available: whether every layer has these rotations. Trap: layers of a model may
// differ in their KV heads, and an artifact of shared rotations has none per head.
std::function<bool(const MethodContext&)> HasStoredRotations(RotationGrouping grouping);
bool HasPerHeadRotations(const MethodContext& context);

}  // namespace oscar
