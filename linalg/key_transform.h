// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Invertible transforms X that balance quantization noise between a cached side and its reader.
// Cached rows k X are quantized; the noise is spread evenly, and its energy is proportional to
// tr(X^T S X), where S is the second moment of k. A reader with covariance C sees a share of the
// noise proportional to tr(X^-1 C X^-T). So the expected error is proportional to the product of
// both traces. Trap: X is not orthogonal: keys take x, queries take inverse^T, and a cached row
// comes back as y * inverse. Derivation: export/simulate/RESULTS.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "linalg/matrix.h"
#include "linalg/rotation.h"  // Composition

namespace oscar {

// Cached rows k become k x, and the queries q that read them become q inverse^T. This leaves q k^T
// unchanged.
struct KeyTransform {
  Matrix x;        // [dim, dim] = diag(d) B, d positive
  Matrix inverse;  // [dim, dim] x^-1
  // Largest / smallest singular value of B. The diagonal d does not matter, because it only scales
  // channels and floating-point errors are relative.
  double condition = 1;
  double residual = 0;  // max|B B^-1 - I|
};

// M + epsilon tr(M) / dim I, whose condition number is at most dim / epsilon + 1. m [dim, dim]
Matrix Shrunk(MatrixRef m, double epsilon);

// Second moment about the mean: M - mean^T mean. m [dim, dim], mean [dim]
Matrix Centred(MatrixRef m, VectorRef mean);

// Returns the X that minimizes tr(X^T S X) tr(X^-1 C X^-T), where S is `cached` and C is `reader`.
//     keys     reader = C_Q, cached = the second moment of keys (centred if keys are centred)
//     values   reader = the sum of W_O^T W_O over the head's query heads,
//              cached = the second moment of values
// X = A R, where A is the symmetric root of S^-1/2 (S^1/2 C S^1/2)^1/2 S^-1/2, and R is composed
// from the eigenvectors E of A S A (kRH: X = A E H). Then X^T S X and X^-1 C X^-T are the same
// matrix, and its diagonal is flat if H comes last.
// Both moments are first balanced by a diagonal scaling, and then shrunk by `epsilon`. So a model
// whose key channels are rescaled (and query channels inversely) gets the same cache.
// Throws NumericalError, naming `what`, if a moment is zero or not positive semidefinite, or if the
// inverse has a residual above kMaxTransformResidual (a larger epsilon helps).
KeyTransform BalancedTransform(MatrixRef reader, MatrixRef cached, double epsilon,
                               Composition composition, std::string_view what);

inline constexpr double kMaxTransformResidual = 1e-9;

// Channel pairs that rope rotates together. A scaling commutes with rope only if both channels have
// the same scale.
struct RopePairs {
  int64_t rotary_dim = 0;    // leading channels that rope rotates; even; others get a scale each
  bool interleaved = false;  // pairs are (2i, 2i + 1); otherwise (i, i + rotary_dim / 2)
  // The other channel of a pair, or the channel itself if rope does not rotate it.
  int64_t Partner(int64_t channel) const;
  bool operator==(const RopePairs&) const = default;
};

inline constexpr double kMaxPairScale = 1024;  // limit on either side of the geometric mean

struct PairScaling {
  RopePairs pairs = {};
  bool power_of_two = false;  // round scales (in log2) to powers of two, exact in any float type
};

// Returns the diagonal D [dim] by which keys become k D and queries q D^-1. With c and s summed
// over a pair of channels, d_i^2 = sqrt(c_i / s_i) minimizes tr(X^T S X) tr(X^-1 C X^-T) among
// diagonals that commute with rope. `query_energy` and `key_energy` are the diagonals of C_Q and of
// the second moment of keys, [dim], not negative. A channel that is never read or never written
// gets the limit of its scale; one that is neither read nor written gets the geometric mean. Throws
// NumericalError, naming `what`, if no channel is in use, or if a value is negative or not finite.
Vector PairScales(VectorRef query_energy, VectorRef key_energy, const PairScaling& scaling,
                  std::string_view what);

// Returns X = D R with D = diag(scales), where R is OSCAR's rotation for the scaled queries: it is
// composed from the eigenvectors of D^-1 C_Q D^-1. `scales` comes from PairScales; with scales of
// 1, X is OSCAR's own rotation.
KeyTransform ScaledRotation(VectorRef scales, MatrixRef query_covariance, Composition composition,
                            std::string_view what);

}  // namespace oscar
