// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compiled with -ffp-contract=off: one rounding per operation.
#include "tests/reference/scalar_sphere.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "linalg/base/check.h"
#include "tests/reference/scalar_lloyd_max.h"  // LevelCode
#include "tests/reference/tree_sum.h"

namespace oscar {
namespace {

// Scales levels or thresholds to coordinates of unit vectors.
template <typename T>
std::vector<T> OfUnitVectors(const std::vector<double>& values, size_t dim) {
  std::vector<T> scaled(values.size());
  const double root = std::sqrt(static_cast<double>(dim));
  std::transform(values.begin(), values.end(), scaled.begin(),
                 [root](double value) { return static_cast<T>(value / root); });
  return scaled;
}

template <typename T>
T SumOfSquares(std::span<const T> values) {
  std::vector<T> squares(values.size());
  std::transform(values.begin(), values.end(), squares.begin(), [](T x) { return x * x; });
  return TreeSum<T>(squares);
}

// Writes the direction y / norm and its codes; returns the norm, unrounded.
template <typename T>
T EncodeDirection(std::span<const T> y, const SphereRule& rule, std::span<T> direction,
                  std::span<uint8_t> codes) {
  OSCAR_CHECK_EQ(codes.size(), y.size());
  const auto thresholds = OfUnitVectors<T>(rule.table.thresholds, y.size());
  const T norm = RowNorm(y);
  for (size_t i = 0; i < y.size(); ++i) {
    direction[i] = norm == 0 ? T{0} : y[i] / norm;
    codes[i] = LevelCode<T>(direction[i], thresholds, true);
  }
  return norm;
}

}  // namespace

template <typename T>
T RowNorm(std::span<const T> y) {
  T largest = 0;
  for (const T x : y) largest = std::max(largest, std::abs(x));
  if (largest == 0) return 0;
  std::vector<T> scaled(y.size());
  std::transform(y.begin(), y.end(), scaled.begin(), [largest](T x) { return x / largest; });
  return largest * std::sqrt(SumOfSquares<T>(scaled));
}

template <typename T>
T EncodeSphere(std::span<const T> y, const SphereRule& rule, std::span<uint8_t> codes) {
  std::vector<T> direction(y.size());
  return RoundTo(EncodeDirection<T>(y, rule, direction, codes), rule.norm_type);
}

template <typename T>
void DecodeSphere(std::span<const uint8_t> codes, T norm, const SphereRule& rule, std::span<T> y) {
  OSCAR_CHECK_EQ(codes.size(), y.size());
  const auto levels = OfUnitVectors<T>(rule.table.levels, y.size());
  for (size_t i = 0; i < y.size(); ++i) y[i] = levels.at(codes[i]);
  if (rule.norm_correction) {
    const T sum = SumOfSquares<T>(y) + static_cast<T>(kNormCorrectionFloor);
    const T factor = T{1} / std::sqrt(sum);
    for (T& value : y) value *= factor;
  }
  for (T& value : y) value *= norm;
}

template <typename T>
ProductNorms<T> EncodeProduct(std::span<const T> y, const SphereRule& rule, std::span<const T> s,
                              std::span<uint8_t> codes, std::span<uint8_t> signs) {
  const size_t dim = y.size();
  OSCAR_CHECK_EQ(s.size(), dim * dim);
  OSCAR_CHECK_EQ(signs.size(), dim);
  std::vector<T> residual(dim);
  const T norm = EncodeDirection<T>(y, rule, residual, codes);
  const auto levels = OfUnitVectors<T>(rule.table.levels, dim);
  for (size_t i = 0; i < dim; ++i) residual[i] -= levels.at(codes[i]);
  for (size_t row = 0; row < dim; ++row) {
    T sum = 0;
    for (size_t i = 0; i < dim; ++i) sum += s[row * dim + i] * residual[i];
    signs[row] = sum >= 0;
  }
  return {RoundTo(norm, rule.norm_type), RoundTo(RowNorm<T>(residual), rule.norm_type)};
}

template <typename T>
void DecodeProduct(std::span<const uint8_t> codes, std::span<const uint8_t> signs,
                   const ProductNorms<T>& norms, const SphereRule& rule, std::span<const T> s,
                   std::span<T> y) {
  const size_t dim = y.size();
  OSCAR_CHECK_EQ(s.size(), dim * dim);
  const auto levels = OfUnitVectors<T>(rule.table.levels, dim);
  const double root = std::sqrt(std::numbers::pi / 2) / static_cast<double>(dim);
  const T factor = norms.residual * static_cast<T>(root);
  for (size_t i = 0; i < dim; ++i) {
    T sum = 0;
    for (size_t row = 0; row < dim; ++row) {
      const T element = s[row * dim + i];
      sum += signs[row] != 0 ? element : -element;
    }
    y[i] = (levels.at(codes[i]) + factor * sum) * norms.norm;
  }
}

#define OSCAR_SPHERE_CODEC(T)                                                                \
  template T RowNorm(std::span<const T>);                                                    \
  template T EncodeSphere(std::span<const T>, const SphereRule&, std::span<uint8_t>);        \
  template void DecodeSphere(std::span<const uint8_t>, T, const SphereRule&, std::span<T>);  \
  template ProductNorms<T> EncodeProduct(std::span<const T>, const SphereRule&,              \
                                         std::span<const T>, std::span<uint8_t>,             \
                                         std::span<uint8_t>);                                \
  template void DecodeProduct(std::span<const uint8_t>, std::span<const uint8_t>,            \
                              const ProductNorms<T>&, const SphereRule&, std::span<const T>, \
                              std::span<T>)
OSCAR_SPHERE_CODEC(float);
OSCAR_SPHERE_CODEC(double);
#undef OSCAR_SPHERE_CODEC

}  // namespace oscar
