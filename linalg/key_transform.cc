// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/key_transform.h"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/eigh.h"
#include "linalg/product.h"

namespace oscar {
namespace {

// Eigenvalues of a second moment. Values that rounding made negative become 0.
Eigenbasis MomentBasis(MatrixRef moment, const std::string& what) {
  Eigenbasis basis = SymmetricEigenbasis(moment, what);
  const double least = basis.eigenvalues[0], most = basis.eigenvalues[basis.eigenvalues.size() - 1];
  if (!(least >= -1e-9 * most)) {
    throw NumericalError(fmt::format(
        "{}: a second moment cannot have a negative eigenvalue, found {:g} (the largest is {:g})",
        what, least, most));
  }
  basis.eigenvalues = basis.eigenvalues.cwiseMax(0);
  return basis;
}

// U diag(eigenvalues^power) U^T
Matrix Power(const Eigenbasis& basis, double power) {
  return Product(basis.eigenvectors * basis.eigenvalues.array().pow(power).matrix().asDiagonal(),
                 basis.eigenvectors.transpose());
}

Matrix Symmetric(const Matrix& m) { return 0.5 * (m + m.transpose()); }

// Restores the orthogonality that a matrix lost by rounding, with two Newton-Schulz steps. Each
// step squares the error.
Matrix Orthogonalized(Matrix e) {
  for (int step = 0; step < 2; ++step) e = 1.5 * e - 0.5 * Product(e, TransposedProduct(e, e));
  return e;
}

// D M D
Matrix Scaled(MatrixRef m, VectorRef d) { return d.asDiagonal() * m * d.asDiagonal(); }

NumericalError NoInverse(std::string_view what, double residual, double allowed, double condition) {
  return NumericalError(
      fmt::format("{}: the transform and its inverse leave a residual of {:.3g}, expected at most "
                  "{:.0e}, at a condition number of {:.3g}; use a larger shrinkage",
                  what, residual, allowed, condition));
}

// The transform x = diag(d) b with its inverse, after checking their product.
KeyTransform Checked(VectorRef d, const Matrix& b, const Matrix& b_inverse, double condition,
                     std::string_view what) {
  KeyTransform transform;
  transform.x = d.asDiagonal() * b;
  transform.inverse = b_inverse * d.cwiseInverse().asDiagonal();
  transform.condition = condition;
  transform.residual =
      (Product(b, b_inverse) - Matrix::Identity(b.rows(), b.cols())).cwiseAbs().maxCoeff();
  if (!(transform.residual <= kMaxTransformResidual) || !transform.x.allFinite() ||
      !transform.inverse.allFinite()) {
    throw NoInverse(what, transform.residual, kMaxTransformResidual, condition);
  }
  return transform;
}

double Clamped(double log_scale, double centre) {
  const double limit = std::log(kMaxPairScale);
  return std::clamp(log_scale, centre - limit, centre + limit);
}

}  // namespace

Matrix Shrunk(MatrixRef m, double epsilon) {
  Matrix shrunk = m;
  shrunk.diagonal().array() += epsilon * m.trace() / static_cast<double>(m.rows());
  return shrunk;
}

Matrix Centred(MatrixRef m, VectorRef mean) { return m - mean * mean.transpose(); }

KeyTransform BalancedTransform(MatrixRef reader, MatrixRef cached, double epsilon,
                               Composition composition, std::string_view what) {
  OSCAR_CHECK_EQ(reader.rows(), cached.rows());
  const std::string name(what);
  const Vector d = PairScales(reader.diagonal(), cached.diagonal(), {}, name);
  const Matrix c = Shrunk(Scaled(reader, d.cwiseInverse()), epsilon);
  const Matrix s = Shrunk(Scaled(cached, d), epsilon);

  // Let S = L L^T and L^T C L = V M V^T. Then L^-T V M^1/4 turns both moments into M^1/2. So does A
  // E, which differs only in signs, where A is the symmetric factor of the polar decomposition and
  // E the orthogonal factor.
  const Eigen::LLT<Matrix> s_factor(s);
  if (s_factor.info() != Eigen::Success) {
    throw NumericalError(fmt::format(
        "{}, cached side: the second moment has no Cholesky factor; use a larger shrinkage", name));
  }
  const Matrix l = s_factor.matrixL();
  const Eigenbasis middle =
      MomentBasis(Symmetric(TransposedProduct(l, Product(c, l))), name + ", both sides");
  const Matrix balanced = s_factor.matrixU().solve(
      Matrix(middle.eigenvectors * middle.eigenvalues.array().pow(0.25).matrix().asDiagonal()));
  const Eigenbasis optimum =
      MomentBasis(Symmetric(Product(balanced, balanced.transpose())), name + ", optimum");
  const Matrix a = Power(optimum, 0.5), a_inverse = Power(optimum, -0.5);
  Eigenbasis turned{.eigenvalues = middle.eigenvalues.cwiseSqrt(),
                    .eigenvectors = Orthogonalized(Product(a_inverse, balanced))};
  const double condition =
      std::sqrt(optimum.eigenvalues[optimum.eigenvalues.size() - 1] / optimum.eigenvalues[0]);
  if (const double bent = OrthogonalityResidual(turned.eigenvectors); !(bent <= kMaxOrthogonality))
    throw NoInverse(what, bent, kMaxOrthogonality, condition);
  FixSigns(turned.eigenvectors);
  const Matrix e = Compose(turned, composition).matrix();
  return Checked(d, Product(a, e), TransposedProduct(e, a_inverse), condition, what);
}

int64_t RopePairs::Partner(int64_t channel) const {
  if (channel >= rotary_dim) return channel;
  if (interleaved) return channel ^ 1;
  const int64_t half = rotary_dim / 2;
  return channel < half ? channel + half : channel - half;
}

Vector PairScales(VectorRef query_energy, VectorRef key_energy, const PairScaling& scaling,
                  std::string_view what) {
  const Eigen::Index dim = query_energy.size();
  OSCAR_CHECK_EQ(key_energy.size(), dim);
  OSCAR_CHECK(scaling.pairs.rotary_dim % 2 == 0 && scaling.pairs.rotary_dim <= dim);
  if (!query_energy.allFinite() || !key_energy.allFinite() || query_energy.minCoeff() < 0 ||
      key_energy.minCoeff() < 0) {
    throw NumericalError(
        fmt::format("{}: channel energies must be finite and not negative, found queries {:g} to "
                    "{:g}, keys {:g} to {:g}",
                    what, query_energy.minCoeff(), query_energy.maxCoeff(), key_energy.minCoeff(),
                    key_energy.maxCoeff()));
  }
  // A channel is in use if it is both written and read. For other channels, the scale would be
  // log(0) or 0 / 0.
  Vector log_scale(dim);
  double sum = 0;
  int64_t in_use = 0;
  for (Eigen::Index i = 0; i < dim; ++i) {
    const Eigen::Index j = scaling.pairs.Partner(i);
    const double c = query_energy[i] + (j == i ? 0 : query_energy[j]);
    const double s = key_energy[i] + (j == i ? 0 : key_energy[j]);
    log_scale[i] = 0.25 * (std::log(c) - std::log(s));
    if (!std::isfinite(log_scale[i])) continue;
    sum += log_scale[i];
    ++in_use;
  }
  if (in_use == 0) {
    throw NumericalError(
        fmt::format("{}: no channel has energy in both queries and keys; the head is dead, or no "
                    "tokens were recorded",
                    what));
  }
  const double centre = sum / static_cast<double>(in_use);
  Vector d(dim);
  for (Eigen::Index i = 0; i < dim; ++i) {
    const double clamped = Clamped(std::isnan(log_scale[i]) ? centre : log_scale[i], centre);
    d[i] =
        scaling.power_of_two ? std::exp2(std::round(clamped / std::log(2.0))) : std::exp(clamped);
  }
  return d;
}

KeyTransform ScaledRotation(VectorRef scales, MatrixRef query_covariance, Composition composition,
                            std::string_view what) {
  const Matrix scaled = Scaled(query_covariance, scales.cwiseInverse());
  const Matrix r = Compose(SymmetricEigenbasis(scaled, what), composition).matrix();
  return Checked(scales, r, r.transpose(), 1, what);
}

}  // namespace oscar
