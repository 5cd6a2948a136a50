// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/random_rotation.h"

#include <Eigen/QR>
#include <cmath>
#include <numbers>

#include "linalg/base/splitmix64.h"

namespace oscar {
namespace {

double Uniform(SplitMix64& random) {  // in (0, 1)
  return (static_cast<double>(random.Next() >> 11) + 0.5) * 0x1p-53;
}

}  // namespace

Matrix RandomGaussian(int64_t dim, uint64_t seed, uint64_t stream) {
  SplitMix64 random(SplitMix64(seed).Next() ^ stream);
  Matrix gaussian(dim, dim);
  for (int64_t i = 0; i < gaussian.size(); ++i) {  // Box-Muller transform
    const double radius = std::sqrt(-2 * std::log(Uniform(random)));
    gaussian.data()[i] = radius * std::cos(2 * std::numbers::pi * Uniform(random));
  }
  return gaussian;
}

Matrix RandomRotation(int64_t dim, uint64_t seed, uint64_t stream) {
  const Eigen::HouseholderQR<Matrix> qr(RandomGaussian(dim, seed, stream));
  Matrix rotation = qr.householderQ();
  for (int64_t i = 0; i < dim; ++i) {
    if (qr.matrixQR()(i, i) < 0) rotation.col(i) *= -1;
  }
  return rotation;
}

}  // namespace oscar
