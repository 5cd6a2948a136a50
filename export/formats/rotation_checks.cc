// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Measurements that decide whether a rotation file is accepted. Its numbers are untrusted: products
// of finite values near 1e30 can overflow to Inf or NaN, so comparisons are written to fail on NaN.
#include "export/formats/rotation_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "linalg/base/error.h"
#include "linalg/matrix.h"

namespace oscar {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::vector<double> Widened(const FloatTensor& tensor) {
  return {tensor.values.begin(), tensor.values.end()};
}

double LimitOf(DType dtype) {
  if (dtype == DType::kBF16) return kMaxBFloat16FileOrthogonality;
  if (dtype == DType::kF16) return kMaxFloat16FileOrthogonality;
  return kMaxFloat32FileOrthogonality;
}

// `tensor` must have the shape [dim]. If `heads_allowed`, [num_kv_heads, dim] is accepted too.
void CheckVector(const FloatTensorPtr& tensor, const MatrixStack& stack, bool heads_allowed,
                 std::string_view where, std::string_view name) {
  if (!tensor) return;
  const std::string what = fmt::format("{}: {}", where, name);
  const auto& shape = tensor->shape;
  const bool flat = shape.size() == 1 && shape[0] == stack.dim;
  const bool heads = heads_allowed && shape.size() == 2 && shape[0] > 0 && shape[1] == stack.dim &&
                     (!stack.per_head || shape[0] == stack.count);
  if (!flat && !heads) {
    throw InputError(fmt::format("{} has shape [{}], expected {} values{} to match the rotation",
                                 what, fmt::join(shape, ", "), stack.dim,
                                 heads_allowed ? " (per head or shared)" : ""));
  }
}

}  // namespace

MatrixStack StackOf(const std::vector<int64_t>& shape, std::string_view what) {
  const size_t rank = shape.size();
  const bool square = (rank == 2 || rank == 3) && shape[rank - 1] == shape[rank - 2] &&
                      shape[rank - 1] > 0 && shape[0] > 0;
  if (!square) {
    throw InputError(fmt::format(
        "{}: shape [{}], expected [head_dim, head_dim] or [num_kv_heads, head_dim, head_dim]", what,
        fmt::join(shape, ", ")));
  }
  return {rank == 3 ? shape[0] : 1, shape[rank - 1], rank == 3};
}

double InverseError(const MatrixStack& stack, const std::vector<double>& a,
                    const std::vector<double>& b, double* scale) {
  const int64_t dim = stack.dim;
  double worst = 0;
  for (int64_t i = 0; i < stack.count; ++i) {
    const Eigen::Map<const RowMajor> left(a.data() + i * dim * dim, dim, dim);
    const Eigen::Map<const RowMajor> right(b.data() + i * dim * dim, dim, dim);
    Matrix product = left * right.transpose();
    product.diagonal().array() -= 1.0;
    const double error = product.cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
    if (!(error <= worst)) worst = error;
    if (scale != nullptr) {
      const Matrix sizes = left.cwiseAbs() * right.cwiseAbs().transpose();
      *scale = std::max(*scale, sizes.maxCoeff());
    }
    if (std::isnan(worst)) break;
  }
  return worst;
}

void CheckFinite(const FloatTensor& tensor, std::string_view what) {
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    if (!std::isfinite(tensor.values[i])) {
      throw NumericalError(fmt::format("{} holds {} at element {}; calibrate the layer again", what,
                                       tensor.values[i], i));
    }
  }
}

void CheckFinite(const std::vector<double>& values, std::string_view what) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      throw NumericalError(
          fmt::format("{} holds {} at element {}; collect the layer again", what, values[i], i));
    }
  }
}

const RotationChecker::Measured& RotationChecker::Inverse(const FloatTensor& a,
                                                          const FloatTensor& b) {
  const auto [found, added] = measured_.try_emplace({&a, &b});
  if (added) {
    found->second.error =
        InverseError(StackOf(a.shape, "rotation"), Widened(a), Widened(b), &found->second.scale);
  }
  return found->second;
}

void RotationChecker::Finite(const FloatTensor& tensor, std::string_view what) {
  if (finite_.insert(&tensor).second) CheckFinite(tensor, what);
}

std::optional<double> RotationChecker::CheckInverse(const FloatTensor& rotation,
                                                    const FloatTensorPtr& inverse,
                                                    std::string_view where, std::string_view name) {
  if (!inverse) return std::nullopt;
  const std::string what = fmt::format("{}: {}", where, name);
  if (inverse->shape != rotation.shape) {
    throw InputError(fmt::format("{} has shape [{}], but rotation has [{}]", what,
                                 fmt::join(inverse->shape, ", "), fmt::join(rotation.shape, ", ")));
  }
  Finite(*inverse, what);
  const auto& [error, scale] = Inverse(rotation, *inverse);
  const double limit = kMaxFloat32FileOrthogonality * std::max(1.0, scale);
  if (!(error <= limit)) {
    throw NumericalError(
        fmt::format("{} does not undo the rotation: max|R {}^T - I| is {:.3g}, expected at most "
                    "{:.3g}; fit the layer again",
                    what, name, error, limit));
  }
  return error;
}

void RotationChecker::Check(RotationLayer* layer, DType dtype, bool must_be_orthogonal,
                            std::string_view where) {
  const std::string what = fmt::format("{}: rotation", where);
  const MatrixStack stack = StackOf(layer->rotation->shape, what);
  Finite(*layer->rotation, what);
  layer->orthogonality = Inverse(*layer->rotation, *layer->rotation).error;
  if (must_be_orthogonal && !(layer->orthogonality <= LimitOf(dtype))) {
    throw NumericalError(fmt::format(
        "{} is not orthogonal: max|R R^T - I| is {:.3g}, expected at most {:.3g} for {}; fit the "
        "layer again, or import the covariances instead",
        what, layer->orthogonality, LimitOf(dtype), TorchDTypeName(dtype)));
  }
  layer->q_inverse_error = CheckInverse(*layer->rotation, layer->q_rotation, where, "q_rotation");
  layer->o_inverse_error = CheckInverse(*layer->rotation, layer->o_rotation, where, "o_rotation");
  if (!must_be_orthogonal && !layer->q_rotation && !layer->o_rotation) {
    throw InputError(fmt::format(
        "{} is declared non-orthogonal, but neither q_rotation nor o_rotation undoes it", what));
  }
  CheckVector(layer->eigenvalues, stack, stack.per_head, where, "eigenvalues");
  CheckVector(layer->k_mean, stack, true, where, "k_mean");
  CheckVector(layer->mean, stack, false, where, "mean");
  CheckVector(layer->pair_scale, stack, true, where, "pair_scale");
  for (const FloatTensorPtr& tensor :
       {layer->eigenvalues, layer->k_mean, layer->mean, layer->pair_scale}) {
    if (tensor) Finite(*tensor, fmt::format("{}: a vector stored with the rotation", where));
  }
}

void CheckLayersAgree(const RotationFile& file) {
  const std::string where = file.path.string();
  std::set<int64_t> ids;
  std::map<int64_t, int64_t> heads_by_dim;
  const auto& first = file.layers.front();
  for (const RotationLayer& layer : file.layers) {
    if (!ids.insert(layer.layer_id).second) {
      throw InputError(fmt::format("{}: layer {} appears twice", where, layer.layer_id));
    }
    for (const auto& [field, name] :
         {std::pair{&RotationLayer::q_rotation, "q_rotation"},
          std::pair{&RotationLayer::o_rotation, "o_rotation"},
          std::pair{&RotationLayer::k_mean, "k_mean"}, std::pair{&RotationLayer::mean, "mean"},
          std::pair{&RotationLayer::pair_scale, "pair_scale"}}) {
      if (static_cast<bool>(layer.*field) != static_cast<bool>(first.*field)) {
        throw InputError(
            fmt::format("{}: {} is present for layer {} but not for layer {}; expected it for "
                        "every layer or for none",
                        where, name, layer.*field ? layer.layer_id : first.layer_id,
                        layer.*field ? first.layer_id : layer.layer_id));
      }
    }
    if (!layer.rotation) continue;
    const MatrixStack stack = StackOf(layer.rotation->shape, where);
    if (stack.per_head != (first.rotation->shape.size() == 3)) {
      throw InputError(fmt::format(
          "{}: layer {} is {} but layer {} is not; expected all layers to be alike", where,
          layer.layer_id, stack.per_head ? "per head" : "shared", first.layer_id));
    }
    const auto [known, added] = heads_by_dim.emplace(stack.dim, stack.count);
    if (!added && known->second != stack.count) {
      throw InputError(
          fmt::format("{}: layer {} has {} KV heads of dimension {}, but another layer has {}",
                      where, layer.layer_id, stack.count, stack.dim, known->second));
    }
  }
}

}  // namespace oscar
