// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The artifact's rotations and clip ratios for the keys and values of a layer, without a quantizer.
#pragma once

#include <utility>

#include "export/simulate/cache_method.h"
#include "export/simulate/rotated_quantizer.h"

namespace oscar {

enum class RotationGrouping {
  kOwn,     // as fitted: per head, or shared if the artifact has only that
  kShared,  // one for all KV heads of a layer
};

// Returns the rotations and clip ratios of a layer's keys and values. If the arm clips without
// naming a ratio, the ratios are the artifact's. Throws InputError if the artifact has no such
// rotation.
RotatedSides StoredRotations(const MethodContext& context, size_t layer_index,
                             RotationGrouping grouping, const ArmOptions& options);

// Returns a function for CacheMethod::available. It tells whether every layer has these rotations.
// Trap: layers may differ in their number of KV heads, and an artifact with shared rotations has
// none per head.
std::function<bool(const MethodContext&)> HasStoredRotations(RotationGrouping grouping);
bool HasPerHeadRotations(const MethodContext& context);

}  // namespace oscar
