// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/rotation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/hadamard.h"
#include "linalg/product.h"

namespace oscar {
namespace {

// A composition as data: its name and its factors, left to right.
struct CompositionRow {
  Composition composition;
  std::string_view name;
  std::string_view factors;  // the letters U, H, P
};

constexpr std::array<CompositionRow, 9> kCompositions = {{
    {Composition::kPlain, "plain", "U"},
    {Composition::kPbr, "pbr", "P"},
    {Composition::kBr, "br", "UP"},
    {Composition::kBrH128, "br_h128", "UPH"},
    {Composition::kRH, "r_h", "UH"},
    {Composition::kHPbr, "h_pbr", "HP"},
    {Composition::kHRPbr, "h_r_pbr", "HUP"},
    {Composition::kHPbrR, "h_pbr_r", "HPU"},
    {Composition::kRHPbr, "r_h_pbr", "UHP"},
}};

constexpr auto kAllCompositions = [] {
  std::array<Composition, kCompositions.size()> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = kCompositions[i].composition;
  return all;
}();

const CompositionRow& Row(Composition composition) {
  for (const CompositionRow& row : kCompositions) {
    if (row.composition == composition) return row;
  }
  OSCAR_CHECK(!"a Composition without a row");
  return kCompositions.back();
}

// H or P. Both are orthogonal, so a factor's inverse is its transpose.
Matrix FixedFactor(char factor, int64_t dim) {
  OSCAR_CHECK(factor == 'H' || factor == 'P');
  return factor == 'H' ? BlockHadamard(dim) : BitReversalMatrix(dim);
}

// m P, which permutes the columns of m.
Matrix Permuted(const Matrix& m) {
  const std::vector<int64_t> columns = BitReversalPermutation(m.cols());
  Matrix permuted(m.rows(), m.cols());
  for (Eigen::Index j = 0; j < m.cols(); ++j)
    permuted.col(j) = m.col(columns[static_cast<size_t>(j)]);
  return permuted;
}

}  // namespace

double OrthogonalityResidual(MatrixRef r) {
  OSCAR_CHECK_LT(0, r.size());
  return (TransposedProduct(r, r) - Matrix::Identity(r.cols(), r.cols())).cwiseAbs().maxCoeff();
}

double Float32OrthogonalityResidual(MatrixRef r) {
  const Matrix rounded = r.cast<float>().cast<double>();
  return OrthogonalityResidual(rounded);
}

Rotation::Rotation(Matrix r, std::string_view what) : r_(std::move(r)) {
  if (r_.size() == 0 || r_.rows() != r_.cols()) {
    throw NumericalError(fmt::format("{}: a rotation must be a square matrix, found [{}, {}]", what,
                                     r_.rows(), r_.cols()));
  }
  if (!r_.allFinite()) {
    throw NumericalError(
        fmt::format("{}: the [{}, {}] rotation contains NaN or Inf", what, r_.rows(), r_.cols()));
  }
  orthogonality_ = OrthogonalityResidual(r_);
  float32_orthogonality_ = Float32OrthogonalityResidual(r_);
  // The condition is negated so that a NaN residual (overflow) is refused too.
  if (!(orthogonality_ <= kMaxOrthogonality)) {
    throw NumericalError(
        fmt::format("{}: the [{}, {}] matrix is not orthogonal: max|R^T R - I| is {:.3g}, expected "
                    "at most {:.0e}; a rotation read from float32 must be refitted, not composed",
                    what, r_.rows(), r_.cols(), orthogonality_, kMaxOrthogonality));
  }
  if (!(float32_orthogonality_ <= kMaxFloat32Orthogonality)) {
    throw NumericalError(fmt::format(
        "{}: max|R^T R - I| of the [{}, {}] rotation is {:.3g} in float32, expected at most {:.0e}",
        what, r_.rows(), r_.cols(), float32_orthogonality_, kMaxFloat32Orthogonality));
  }
}

std::span<const Composition> AllCompositions() { return kAllCompositions; }

std::string_view CompositionName(Composition composition) { return Row(composition).name; }

Composition CompositionFromName(std::string_view name) {
  std::vector<std::string_view> names;
  for (const CompositionRow& row : kCompositions) {
    if (row.name == name) return row.composition;
    names.push_back(row.name);
  }
  throw UsageError(
      fmt::format("unknown composition \"{}\", expected one of {}", name, fmt::join(names, ", ")));
}

Rotation Compose(const Eigenbasis& basis, Composition composition) {
  const Matrix& u = basis.eigenvectors;
  Matrix r;  // empty: the identity
  for (const char factor : Row(composition).factors) {
    if (r.size() == 0) {
      // Adding 0.0 matches a product with the identity, whose sums never give a negative zero.
      r = (factor == 'U' ? u : FixedFactor(factor, u.rows())).array() + 0.0;
    } else if (factor == 'P') {
      r = Permuted(r);
    } else {
      r = Product(r, factor == 'U' ? u : FixedFactor(factor, u.rows()));
    }
  }
  return Rotation(std::move(r), fmt::format("composition {}", CompositionName(composition)));
}

Rotation HadamardRotation(int64_t dim) { return Rotation(BlockHadamard(dim), "Hadamard rotation"); }

Rotation IdentityRotation(int64_t dim) {
  return Rotation(Matrix::Identity(dim, dim), "identity rotation");
}

Matrix RecoverEigenvectors(MatrixRef r, Composition composition) {
  const CompositionRow& row = Row(composition);
  const size_t position = row.factors.find('U');
  if (position == std::string_view::npos) {
    throw InputError(
        fmt::format("composition {} contains no eigenvectors, so no covariance can be recovered "
                    "from its rotation",
                    row.name));
  }
  if (r.rows() != r.cols() || r.size() == 0) {
    throw NumericalError(
        fmt::format("composition {}: a rotation must be a square matrix, found [{}, {}]", row.name,
                    r.rows(), r.cols()));
  }
  Matrix u = r;
  for (size_t i = 0; i < position; ++i) {  // R = L U ...: strips the left factors, outermost first
    u = TransposedProduct(FixedFactor(row.factors[i], r.rows()), u);
  }
  for (size_t i = row.factors.size() - 1; i > position; --i) {
    u = Product(u, FixedFactor(row.factors[i], r.rows()).transpose());
  }
  return u;
}

Vector Importance(MatrixRef r, MatrixRef c) {
  OSCAR_CHECK_EQ(r.rows(), c.rows());
  OSCAR_CHECK_EQ(c.rows(), c.cols());
  return r.cwiseProduct(Product(c, r)).colwise().sum();
}

double ImportanceMaxOverMean(MatrixRef r, MatrixRef c) {
  const Vector importance = Importance(r, c);
  const double mean = importance.mean();
  if (!(mean > 0)) {
    throw NumericalError(
        fmt::format("the importance of a [{}, {}] covariance has mean {:g}, expected more than 0",
                    c.rows(), c.cols(), mean));
  }
  return importance.maxCoeff() / mean;
}

}  // namespace oscar
