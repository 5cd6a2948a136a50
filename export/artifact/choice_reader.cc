// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/choice_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "export/artifact/artifact_format.h"
#include "export/formats/rotation_file.h"  // kMaxFloat32FileOrthogonality
#include "linalg/base/error.h"
#include "linalg/error_feedback.h"
#include "linalg/product.h"
#include "linalg/rotation.h"

namespace oscar {
namespace {

// Largest |M^-1 M - I| accepted in float32. It stays small because shrinkage in the fit bounds the
// condition number of M.
constexpr double kMaxInverseResidual = 1e-3;

}  // namespace

std::vector<float> StoredFloats(const SafetensorsFile& file, const std::string& name,
                                const std::vector<int64_t>& shape) {
  const TensorView view = file.tensor(name);
  if (view.dtype != DType::kF32 || view.shape != shape) {
    throw InputError(fmt::format("{}: tensor {} is {} [{}], expected F32 [{}]",
                                 file.path().string(), name, DTypeName(view.dtype),
                                 fmt::join(view.shape, ", "), fmt::join(shape, ", ")));
  }
  std::vector<float> values(view.data.size() / sizeof(float));
  std::memcpy(values.data(), view.data.data(), view.data.size());
  return values;
}

std::vector<double> StoredDoubles(const SafetensorsFile& file, const std::string& name,
                                  const std::vector<int64_t>& shape) {
  const std::vector<float> values = StoredFloats(file, name, shape);
  return {values.begin(), values.end()};
}

ChoiceReader::ChoiceReader(const SafetensorsFile& file, int layer_id, std::string choice,
                           int64_t heads, bool imported)
    : file_(file),
      layer_id_(layer_id),
      choice_(std::move(choice)),
      heads_(heads),
      imported_(imported) {}

CacheSide ChoiceReader::Side(char side, int64_t dim) const {
  CacheSide read;
  if (imported_ && !Has(side, "rotation")) return read;
  read.dim = dim;
  const int64_t stored = Shape(side, "rotation").at(0);
  read.num_rotations = stored == 1 ? 1 : heads_;
  const std::vector<int64_t> matrices = {read.num_rotations, dim, dim};
  read.rotation = Doubles(side, "rotation", matrices);
  if (Has(side, "query_rotation")) read.query_rotation = Doubles(side, "query_rotation", matrices);
  if (Has(side, "pair_scale")) read.pair_scale = Doubles(side, "pair_scale", {heads_, dim});
  if (Has(side, "mean")) read.mean = Doubles(side, "mean", {heads_, dim});
  if (Has(side, "feedback")) read.feedback = Doubles(side, "feedback", {heads_, dim, dim});
  Check(read, side);
  return read;
}

std::vector<float> ChoiceReader::Eigenvalues(char side, const CacheSide& read) const {
  if (!imported_ || !Has(side, "eigenvalues")) return {};
  return StoredFloats(file_, Name(side, "eigenvalues"), {read.num_rotations, read.dim});
}

std::vector<double> ChoiceReader::Clip(char side) const {
  if (imported_ && !Has(side, "clip_ratio")) return {1};
  const int64_t stored = Shape(side, "clip_ratio").at(0);
  return Doubles(side, "clip_ratio", {stored == 1 ? 1 : heads_});
}

std::string ChoiceReader::Name(char side, const char* what) const {
  return ChoiceTensorName(layer_id_, side, choice_, what);
}

bool ChoiceReader::Has(char side, const char* what) const {
  return file_.tensors().contains(Name(side, what));
}

std::vector<int64_t> ChoiceReader::Shape(char side, const char* what) const {
  const std::vector<int64_t> shape = file_.tensor(Name(side, what)).shape;
  if (shape.empty()) {
    throw InputError(
        fmt::format("{}: tensor {} has no shape", file_.path().string(), Name(side, what)));
  }
  return shape;
}

std::vector<double> ChoiceReader::Doubles(char side, const char* what,
                                          const std::vector<int64_t>& shape) const {
  return StoredDoubles(file_, Name(side, what), shape);
}

void ChoiceReader::Check(const CacheSide& side, char name) const {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const std::string what = fmt::format("{}: {}", file_.path().string(), Name(name, "rotation"));
  for (int64_t i = 0; i < side.num_rotations; ++i) {
    const auto at = static_cast<size_t>(i * side.dim * side.dim);
    const auto matrix = [&](const std::vector<double>& values) {
      return Matrix(Eigen::Map<const RowMajor>(values.data() + at, side.dim, side.dim));
    };
    const Matrix m = matrix(side.rotation);
    const bool pair = !side.query_rotation.empty();
    const double limit = pair        ? kMaxInverseResidual
                         : imported_ ? kMaxFloat32FileOrthogonality
                                     : kMaxFloat32Orthogonality;
    const Matrix product = TransposedProduct(pair ? matrix(side.query_rotation) : m, m);
    const double residual = (product - Matrix::Identity(side.dim, side.dim)).cwiseAbs().maxCoeff();
    if (!(residual <= limit)) {
      throw NumericalError(fmt::format(
          "{}, matrix {}: {} is {:.3g}, expected at most {:.0e}", what, i,
          pair ? "with its query_rotation max|M_qᵀM - I|" : "max|RᵀR - I|", residual, limit));
    }
  }
  for (size_t at = 0; at < side.feedback.size(); at += static_cast<size_t>(side.dim * side.dim)) {
    try {
      PackFeedbackFactor(Eigen::Map<const RowMajor>(side.feedback.data() + at, side.dim, side.dim));
    } catch (const NumericalError& error) {
      throw NumericalError(
          fmt::format("{}: {}: {}", file_.path().string(), Name(name, "feedback"), error.what()));
    }
  }
  for (const double scale : side.pair_scale) {
    if (!(scale > 0 && std::isfinite(scale))) {
      throw NumericalError(fmt::format("{}: a value of {} is {}, expected a positive scale",
                                       file_.path().string(), Name(name, "pair_scale"), scale));
    }
  }
}

}  // namespace oscar
