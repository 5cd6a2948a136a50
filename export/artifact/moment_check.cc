// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/moment_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "calib/fit/fit.h"
#include "calib/moments/moments_file.h"
#include "calib/options.h"
#include "export/artifact/artifact_format.h"
#include "linalg/base/error.h"
#include "linalg/base/parallel_for.h"
#include "linalg/product.h"
#include "linalg/rotation.h"

namespace oscar {
namespace {

Matrix RotationOf(const StoredSide& side, int64_t index) {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const RowMajor>(side.rotation.data() + index * side.dim * side.dim, side.dim,
                                    side.dim);
}

// Returns the largest |U^T C U - diag(eigenvalues)|, relative to the largest eigenvalue or
// variance.
double Residual(const Matrix& u, const Matrix& covariance, const StoredSide& side, int64_t index) {
  const Eigen::Map<const Eigen::VectorXf> eigenvalues(side.eigenvalues.data() + index * side.dim,
                                                      side.dim);
  Matrix difference = TransposedProduct(u, Product(covariance, u));
  difference.diagonal() -= eigenvalues.cast<double>();
  const double largest = std::max(static_cast<double>(eigenvalues.cwiseAbs().maxCoeff()),
                                  covariance.diagonal().cwiseAbs().maxCoeff());
  return difference.cwiseAbs().maxCoeff() / largest;
}

class Checker {
 public:
  Checker(const Artifact& artifact, Composition composition)
      : artifact_(artifact), composition_(composition) {}

  // `covariances`: one per rotation of the side, or empty if unknown.
  void Side(int layer_id, const char* name, const StoredSide& side,
            const std::vector<Matrix>& covariances) {
    if (static_cast<int64_t>(covariances.size()) != side.num_rotations) {
      result_.unchecked += side.num_rotations;
      return;
    }
    std::vector<double> residuals(covariances.size());
    ParallelFor(side.num_rotations, [&](int64_t i) {
      const Matrix u = RecoverEigenvectors(RotationOf(side, i), composition_);
      residuals[static_cast<size_t>(i)] = Residual(u, covariances[static_cast<size_t>(i)], side, i);
    });
    for (int64_t i = 0; i < side.num_rotations; ++i) {
      const double residual = residuals[static_cast<size_t>(i)];
      if (!(residual <= kMaxMomentResidual)) {
        throw NumericalError(fmt::format(
            "{}: layer {}, {}, rotation {}: does not belong to the covariance in {}: UᵀCU differs "
            "from the stored eigenvalues by {:.2g} of the largest, expected at most {:.0e}. The "
            "rotation was transposed, swapped with another, or changed; make the artifact again",
            artifact_.directory().string(), layer_id, name, i, kMomentsFile, residual,
            kMaxMomentResidual));
      }
      result_.worst = std::max(result_.worst, residual);
      ++result_.checked;
    }
  }

  const MomentCheck& result() const { return result_; }

 private:
  const Artifact& artifact_;
  Composition composition_;
  MomentCheck result_;
};

bool HasEigenvectors(Composition composition) {
  return composition != Composition::kPbr && composition != Composition::kHPbr;
}

}  // namespace

MomentCheck CheckRotationsFitMoments(const Artifact& artifact) {
  const std::string manifest = (artifact.directory() / kManifestFile).string();
  const Json& calibration = JsonMember(artifact.manifest(), "calibration", manifest);
  const Composition composition =
      CompositionFromName(JsonString(calibration, "composition", manifest));
  const ValueTarget target = ValueTargetFromName(JsonString(calibration, "value_target", manifest));
  const MomentsReader moments_file(artifact.files().path(kMomentsFile));
  Checker checker(artifact, composition);
  for (const int layer_id : artifact.layer_ids()) {
    const StoredLayer layer = artifact.ReadLayer(layer_id);
    const LayerMoments moments = moments_file.Read(layer_id);
    if (moments.head_dim != layer.k.dim || moments.v_head_dim != layer.v.dim) {
      throw InputError(
          fmt::format("{}: layer {}: the moments have head dimensions {} and {}, but the rotations "
                      "have {} and {}",
                      artifact.directory().string(), layer_id, moments.head_dim, moments.v_head_dim,
                      layer.k.dim, layer.v.dim));
    }
    std::vector<Matrix> query, value;
    const bool has_value = target == ValueTarget::kDiagonal ? !moments.diagonal.empty()
                                                            : !moments.attention_output.empty();
    for (int64_t head = 0; head < moments.num_kv_heads && HasEigenvectors(composition); ++head) {
      if (!moments.query.empty()) query.push_back(moments.QueryCovariance(head));
      if (has_value) value.push_back(moments.ValueCovariance(head, target));
      if (!query.empty() && !value.empty() && moments.latent)
        query.back() = value.back() = JointCovariance(query.back(), value.back());
    }
    const auto mean = [](const std::vector<Matrix>& heads) {
      return heads.empty() ? std::vector<Matrix>() : std::vector<Matrix>{MeanOverHeads(heads)};
    };
    checker.Side(layer_id, "keys", layer.k, query);
    checker.Side(layer_id, "values", layer.v, value);
    checker.Side(layer_id, "keys, shared", layer.k_shared, mean(query));
    checker.Side(layer_id, "values, shared", layer.v_shared, mean(value));
  }
  return checker.result();
}

}  // namespace oscar
