// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See random_rotation.h.
#include "export/simulate/random_rotation.h"

#include <Eigen/QR>
#include <cmath>
#include <numbers>

namespace oscar {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014).
uint64_t Next(uint64_t& state) {
  uint64_t z = state += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

double Uniform(uint64_t& state) {  // in (0, 1)
  return (static_cast<double>(Next(state) >> 11) + 0.5) * 0x1p-53;
}

}  // namespace

Matrix RandomRotation(int64_t dim, uint64_t seed, uint64_t stream) {
  uint64_t state = seed;
  state = Next(state) ^ stream;
  Matrix gaussian(dim, dim);
  for (int64_t i = 0; i < gaussian.size(); ++i) {  // Box and Muller
    const double radius = std::sqrt(-2 * std::log(Uniform(state)));
    gaussian.data()[i] = radius * std::cos(2 * std::numbers::pi * Uniform(state));
  }
  const Eigen::HouseholderQR<Matrix> qr(gaussian);
  Matrix rotation = qr.householderQ();
  for (int64_t i = 0; i < dim; ++i) {
    if (qr.matrixQR()(i, i) < 0) rotation.col(i) *= -1;
  }
  return rotation;
}

}  // namespace oscar
