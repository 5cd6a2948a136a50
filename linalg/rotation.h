// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rotations fitted to attention statistics: R = U H P (OSCAR, arXiv 2605.17757, section 3).
// Trap: tokens are row vectors, so a rotated token is x * R and the query must use the same R.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "linalg/eigh.h"
#include "linalg/matrix.h"

namespace oscar {

// Return max|R^T R - I| for an [n, n] matrix (n > 0): in float64, or after R is rounded to float32.
double OrthogonalityResidual(MatrixRef r);
double Float32OrthogonalityResidual(MatrixRef r);

inline constexpr double kMaxOrthogonality = 1e-12;        // for a Rotation
inline constexpr double kMaxFloat32Orthogonality = 1e-6;  // for Float32OrthogonalityResidual

// An orthogonal matrix whose orthogonality has been measured, not assumed.
class Rotation {
 public:
  // Throws NumericalError, naming `what`, if r is empty, not square or not finite, or if a residual
  // exceeds its limit above.
  Rotation(Matrix r, std::string_view what);

  const Matrix& matrix() const& { return r_; }  // [head_dim, head_dim]
  Matrix matrix() && { return std::move(r_); }  // for a temporary: avoids a dangling reference
  double orthogonality() const { return orthogonality_; }                  // max|R^T R - I|
  double float32_orthogonality() const { return float32_orthogonality_; }  // after a cast

 private:
  Matrix r_;
  double orthogonality_ = 0;
  double float32_orthogonality_ = 0;
};

// Factors of a rotation in product order, named as in upstream's compute_kv_rotation.py. The names
// are stored in artifacts and file names. U holds the eigenvectors; H and P are in hadamard.h.
enum class Composition {
  kPlain,   // plain: U
  kPbr,     // pbr: P
  kBr,      // br: U P
  kBrH128,  // br_h128: U P H; H has the head's size, even if that is not 128
  kRH,      // r_h: U H
  kHPbr,    // h_pbr: H P
  kHRPbr,   // h_r_pbr: H U P
  kHPbrR,   // h_pbr_r: H P U
  kRHPbr,   // r_h_pbr: U H P, the default
};

std::span<const Composition> AllCompositions();
std::string_view CompositionName(Composition composition);
Composition CompositionFromName(std::string_view name);  // throws UsageError listing all names

// Composes a rotation from the eigenvectors of a covariance, in ascending order of the eigenvalues.
// If head_dim is not a power of two, H and P act on blocks (HadamardBlockSize). If H is last, or
// followed only by P, diag(R^T C R) is constant within a block; if there is one block, it equals
// tr(C) / head_dim. Throws NumericalError if the eigenvectors are not orthogonal.
Rotation Compose(const Eigenbasis& basis, Composition composition);

Rotation HadamardRotation(int64_t dim);  // R = H, the data-free baseline
Rotation IdentityRotation(int64_t dim);

// Recovers U from a composed matrix [n, n]; for example, U = R P^T H for r_h_pbr. Throws InputError
// for pbr and h_pbr, which do not contain U.
Matrix RecoverEigenvectors(MatrixRef r, Composition composition);

// Importance returns diag(R^T C R) [n]: the attention's second moment along each rotated coordinate
// (App. A.4). ImportanceMaxOverMean returns its maximum / mean: 1 is perfectly flat, and n means
// that one coordinate has all of it. It throws NumericalError if the mean is not positive.
Vector Importance(MatrixRef r, MatrixRef c);
double ImportanceMaxOverMean(MatrixRef r, MatrixRef c);

}  // namespace oscar
