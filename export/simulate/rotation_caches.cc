// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See rotation_caches.h.
#include "export/simulate/rotation_caches.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace oscar {

LayerCache RotatedCache(RotatedQuantizer k, RotatedQuantizer v) {
  return {[k = std::move(k)](const at::Tensor& rows) { return RoundTrip(k, rows); },
          [v = std::move(v)](const at::Tensor& rows) { return RoundTrip(v, rows); }};
}

at::Tensor RotationTensor(const StoredSide& side) {
  at::Tensor rotation = at::empty({side.num_rotations, side.dim, side.dim}, at::kFloat);
  std::copy(side.rotation.begin(), side.rotation.end(), rotation.mutable_data_ptr<float>());
  return rotation;
}

at::Tensor RotationTensor(const std::vector<Matrix>& rotations) {
  const int64_t dim = rotations.at(0).rows();
  at::Tensor tensor = at::empty({static_cast<int64_t>(rotations.size()), dim, dim}, at::kFloat);
  float* out = tensor.mutable_data_ptr<float>();
  for (const Matrix& rotation : rotations) {
    for (int64_t row = 0; row < dim; ++row) {
      for (int64_t column = 0; column < dim; ++column)
        *out++ = static_cast<float>(rotation(row, column));
    }
  }
  return tensor;
}

const StoredSide& SharedSide(const StoredSide& own, const StoredSide& shared) {
  return shared.num_rotations == 0 && own.num_rotations == 1 ? own : shared;
}

ClipPair ArtifactClip(const StoredLayer& layer, bool clip) {
  return clip ? ClipPair{layer.k.clip_ratio, layer.v.clip_ratio} : ClipPair{};
}

ClipPair GivenClip(const MethodContext& context, bool clip) {
  return clip ? ClipPair{context.options().k_clip, context.options().v_clip} : ClipPair{};
}

}  // namespace oscar
