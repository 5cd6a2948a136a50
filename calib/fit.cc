// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See fit.h.
#include "calib/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "linalg/eigh.h"
#include "linalg/rotation.h"

namespace oscar {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

void AppendRotation(const Rotation& rotation, SideResult& side) {
  const RowMajor r = rotation.matrix();
  side.rotation.insert(side.rotation.end(), r.data(), r.data() + r.size());
  side.orthogonality = std::max(side.orthogonality, rotation.orthogonality());
  side.float32_orthogonality =
      std::max(side.float32_orthogonality, rotation.float32_orthogonality());
  side.num_rotations += 1;
}

SideResult FitSide(const std::vector<Matrix>& covariances, Composition composition,
                   const std::string& what) {
  SideResult side;
  side.dim = covariances.at(0).rows();
  side.min_relative_gap = 1;
  for (size_t i = 0; i < covariances.size(); ++i) {
    const std::string name =
        covariances.size() == 1 ? what : fmt::format("{}, KV head {}", what, i);
    const Eigenbasis basis = SymmetricEigenbasis(covariances[i], name);
    const Rotation rotation = Compose(basis, composition);
    AppendRotation(rotation, side);
    side.eigenvalues.insert(side.eigenvalues.end(), basis.eigenvalues.data(),
                            basis.eigenvalues.data() + basis.eigenvalues.size());
    side.eigen_residual = std::max(side.eigen_residual, basis.residual);
    side.min_relative_gap = std::min(side.min_relative_gap, basis.min_relative_gap);
    side.importance_max_over_mean = std::max(
        side.importance_max_over_mean, ImportanceMaxOverMean(rotation.matrix(), covariances[i]));
  }
  return side;
}

SideResult DataFree(const Rotation& rotation) {
  SideResult side;
  side.dim = rotation.matrix().rows();
  AppendRotation(rotation, side);
  return side;
}

}  // namespace

LayerFit FitLayer(const LayerMoments& moments, const FitOptions& options) {
  std::vector<Matrix> query, value;
  for (int64_t head = 0; head < moments.num_kv_heads; ++head) {
    query.push_back(moments.QueryCovariance(head));
    value.push_back(moments.ValueCovariance(head, options.value_target));
  }
  const std::string keys = fmt::format("layer {}, key rotation", moments.layer_id);
  const std::string values = fmt::format("layer {}, value rotation", moments.layer_id);
  LayerFit fit;
  fit.k = FitSide(query, options.composition, keys);
  fit.v = FitSide(value, options.composition, values);
  fit.k_shared = FitSide({MeanOverHeads(query)}, options.composition, keys + " (shared)");
  fit.v_shared = FitSide({MeanOverHeads(value)}, options.composition, values + " (shared)");
  return fit;
}

LayerResult RefitLayer(LayerMoments moments, const FitOptions& fit, const ClipOptions& clip) {
  LayerFit sides = FitLayer(moments, fit);
  sides.k.clip_ratio = sides.k_shared.clip_ratio = clip.fixed_k;
  sides.v.clip_ratio = sides.v_shared.clip_ratio = clip.fixed_v;
  return {std::move(moments),
          {},
          std::move(sides.k),
          std::move(sides.v),
          std::move(sides.k_shared),
          std::move(sides.v_shared),
          {}};
}

SideResult IdentitySide(int64_t dim) { return DataFree(IdentityRotation(dim)); }
SideResult HadamardSide(int64_t dim) { return DataFree(HadamardRotation(dim)); }

}  // namespace oscar
