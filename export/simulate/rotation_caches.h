// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared by the methods that rotate: their two sides as caches, and rotations as tensors.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "calib/cache/side_tensors.h"  // RotationTensor
#include "export/simulate/cache_method.h"
#include "export/simulate/rotated_quantizer.h"
#include "linalg/matrix.h"

namespace oscar {

// Clip ratios of a layer's sides; 0 where an arm does not clip.
struct ClipPair {
  double k = 0, v = 0;
};
// The clip ratios of an arm: none, the ratio that it names, or the method's `own`.
ClipPair ArmClip(const ArmOptions& options, const ClipPair& own);
ClipPair ArtifactClip(const StoredLayer& layer, const ArmOptions& options);  // the calibration's
ClipPair GivenClip(const MethodContext& context, const ArmOptions& options);

// Affine codes in the context's quantization groups.
RotatedSides AffineSides(const MethodContext& context, at::Tensor k_rotation, at::Tensor v_rotation,
                         const ClipPair& clip, int bits = 2);

// With the arm's windows.
LayerCache RotatedCache(const MethodContext& context, const ArmOptions& options,
                        RotatedSides sides);

// A method that quantizes every token by itself and knows no clip ratio: its two sides of a layer,
// with the arm's windows.
CacheMethod TokenMethod(
    std::string_view name, std::string_view description,
    std::function<RotatedSides(const MethodContext& context, size_t layer_index)> sides,
    decltype(CacheMethod::cost) cost);

// [num_rotations, dim, dim] float32 on the host.
at::Tensor RotationTensor(const std::vector<Matrix>& rotations);
at::Tensor HadamardTensor(int64_t dim);  // one, of linalg's HadamardRotation

// One rotation for all KV heads of a layer, where the artifact has one (a side fitted per head and
// a shared one beside it, or a shared one alone); num_rotations 0 otherwise.
const StoredSide& SharedSide(const StoredSide& own, const StoredSide& shared);

}  // namespace oscar
