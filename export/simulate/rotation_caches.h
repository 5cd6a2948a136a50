// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Functions shared by the methods that rotate. They make caches from rotated keys and values, and
// tensors from rotations.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "calib/cache/side_tensors.h"  // RotationTensor
#include "export/simulate/cache_method.h"
#include "export/simulate/rotated_quantizer.h"
#include "linalg/matrix.h"

namespace oscar {

// Clip ratios of a layer's keys and values; 0 if an arm does not clip.
struct ClipPair {
  double k = 0, v = 0;
};
// Returns an arm's clip ratios: none, the ratio that it names, or the method's `own`.
ClipPair ArmClip(const ArmOptions& options, const ClipPair& own);
ClipPair ArtifactClip(const StoredLayer& layer, const ArmOptions& options);  // from the calibration
ClipPair GivenClip(const MethodContext& context, const ArmOptions& options);

// Makes the quantizers of keys and values with the context's quantization group size.
RotatedSides AffineSides(const MethodContext& context, at::Tensor k_rotation, at::Tensor v_rotation,
                         const ClipPair& clip, int bits = 2);

// Makes a cache with the arm's windows.
LayerCache RotatedCache(const MethodContext& context, const ArmOptions& options,
                        RotatedSides sides);

// Makes a method that quantizes every token separately and has no clip ratio. `sides` returns the
// quantizers of a layer's keys and values. The method uses the arm's windows.
CacheMethod TokenMethod(
    std::string_view name, std::string_view description,
    std::function<RotatedSides(const MethodContext& context, size_t layer_index)> sides,
    decltype(CacheMethod::cost) cost);

// Returns [num_rotations, dim, dim] float32 on the host.
at::Tensor RotationTensor(const std::vector<Matrix>& rotations);
at::Tensor HadamardTensor(int64_t dim);  // one matrix, from linalg's HadamardRotation

// Returns the rotation that all KV heads of a layer share: `shared`, or `own` if it is the only
// one. If the layer has none, num_rotations of the result is 0.
const StoredSide& SharedSide(const StoredSide& own, const StoredSide& shared);

}  // namespace oscar
