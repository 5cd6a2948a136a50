// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests what OSCAR (arXiv 2605.17757) claims about its rotations, as properties of random
// covariances and rows.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "linalg/affine_codec.h"
#include "linalg/hadamard.h"
#include "linalg/rotation.h"
#include "tests/linalg/random_values.h"

namespace oscar {
namespace {

uint64_t AnySeed() { return *rc::gen::arbitrary<uint32_t>(); }
int64_t AnyDim() { return *rc::gen::element<int64_t>(4, 8, 12, 16, 24, 32, 48, 64, 96, 128); }
int64_t AnyPowerOfTwo() { return *rc::gen::element<int64_t>(4, 8, 16, 32, 64, 128); }

double Distance(const Matrix& a, const Matrix& b) { return (a - b).cwiseAbs().maxCoeff(); }

std::vector<float> FloatRow(int64_t dim, uint64_t seed) {
  const std::vector<double> row = RandomRows(1, dim, seed, 2);
  return {row.begin(), row.end()};
}

std::vector<float> Permuted(const std::vector<float>& row, const std::vector<int64_t>& perm) {
  std::vector<float> result(row.size());
  for (size_t j = 0; j < row.size(); ++j) result[j] = row[static_cast<size_t>(perm[j])];
  return result;
}

std::vector<float> RoundTrip(const std::vector<float>& x, int64_t quant_group_size,
                             double ratio = 0) {
  const AffineFormat format{.bits = 2, .quant_group_size = quant_group_size};
  std::vector<float> y(x.size());
  QuantizeDequantizeAffineRow<float>(x, format, {ratio, ClipMethod::kSort}, y);
  return y;
}

RC_GTEST_PROP(OscarInvariants, I_EveryCompositionIsOrthogonal, ()) {
  const int64_t d = AnyDim();
  const Eigenbasis basis = SymmetricEigenbasis(RandomCovariance(d, AnySeed()), "test");
  for (const Composition composition : AllCompositions()) {
    const Matrix& r = Compose(basis, composition).matrix();
    RC_ASSERT(Distance(r.transpose() * r, Matrix::Identity(d, d)) <= 1e-12);
    RC_ASSERT(Distance(r * r.transpose(), Matrix::Identity(d, d)) <= 1e-12);
  }
}

RC_GTEST_PROP(OscarInvariants, II_RotatedLogitsAreTheLogits, ()) {
  const int64_t d = AnyDim();
  const uint64_t seed = AnySeed();
  const Matrix c = RandomCovariance(d, seed);
  const Matrix keys = RandomNormal(20, d, seed + 2);
  const Matrix queries = RandomNormal(5, d, seed + 3);
  const Matrix logits = keys * queries.transpose();
  for (const Composition composition : AllCompositions()) {
    const Matrix& r = Compose(SymmetricEigenbasis(c, "test"), composition).matrix();
    RC_ASSERT(Distance((keys * r) * (queries * r).transpose(), logits) <=
              1e-13 * static_cast<double>(d));
  }
}

RC_GTEST_PROP(OscarInvariants, III_ImportanceIsFlat, ()) {
  const int64_t d = AnyPowerOfTwo();
  const Matrix c = RandomCovariance(d, AnySeed());
  const Matrix& r = Compose(SymmetricEigenbasis(c, "test"), Composition::kRHPbr).matrix();
  const double flat = c.trace() / static_cast<double>(d);
  RC_ASSERT((Importance(r, c).array() / flat - 1).abs().maxCoeff() <= 1e-12);
}

RC_GTEST_PROP(OscarInvariants, IV_EigenvectorsComeBackAndDiagonalize, ()) {
  const int64_t d = AnyDim();
  const Matrix c = RandomCovariance(d, AnySeed());
  const Eigenbasis basis = SymmetricEigenbasis(c, "test");
  const Matrix& r = Compose(basis, Composition::kRHPbr).matrix();
  const Matrix u = RecoverEigenvectors(r, Composition::kRHPbr);
  const Matrix diagonal = basis.eigenvalues.asDiagonal();
  RC_ASSERT(Distance(u.transpose() * c * u, diagonal) <= 1e-12 * basis.eigenvalues[d - 1]);
}

RC_GTEST_PROP(OscarInvariants, V_EigenvalueOrderOnlySignsColumnsOfUH, ()) {
  const int64_t d = AnyPowerOfTwo();
  const Matrix u = SymmetricEigenbasis(RandomCovariance(d, AnySeed()), "test").eigenvectors;
  const Matrix h = BlockHadamard(d);
  const Matrix ascending = u * h;
  const Matrix descending = u.rowwise().reverse() * h;
  for (int64_t j = 0; j < d; ++j) {
    const double sign = std::popcount(static_cast<uint64_t>(j)) % 2 == 0 ? 1 : -1;
    RC_ASSERT(Distance(descending.col(j), sign * ascending.col(j)) <= 1e-14);
  }
}

RC_GTEST_PROP(OscarInvariants, VI_BitReversalIsANoOpOnWholeRows, ()) {
  const int64_t d = AnyDim();
  const std::vector<float> y = FloatRow(d, AnySeed());
  const std::vector<int64_t> perm = BitReversalPermutation(d);
  RC_ASSERT(RoundTrip(Permuted(y, perm), d) == Permuted(RoundTrip(y, d), perm));
}

RC_GTEST_PROP(OscarInvariants, VI_BitReversalGroupsColumnsByTheirLowBits, ()) {
  const int64_t d = AnyPowerOfTwo();
  const int64_t num_groups = *rc::gen::element<int64_t>(2, 4);
  const int64_t group_size = d / num_groups;
  const std::vector<int64_t> perm = BitReversalPermutation(d);
  const std::vector<int64_t> reversed = BitReversal(num_groups);
  for (int64_t j = 0; j < d; ++j) {
    const int64_t group = j / group_size;
    RC_ASSERT(perm[j] % num_groups == num_groups - 1 - reversed[group]);
  }
}

RC_GTEST_PROP(OscarInvariants, VII_ReconstructionScalesWithTheRow, ()) {
  const int64_t d = AnyDim();
  const std::vector<float> x = FloatRow(d, AnySeed());
  const double ratio = *rc::gen::element(0.0, 0.92);
  const std::vector<float> y = RoundTrip(x, d, ratio);
  const float power = std::ldexp(1.0F, *rc::gen::inRange(-10, 20));  // scaling is exact
  std::vector<float> scaled = x;
  for (float& value : scaled) value *= power;
  const std::vector<float> scaled_y = RoundTrip(scaled, d, ratio);
  for (size_t i = 0; i < x.size(); ++i) RC_ASSERT(scaled_y[i] == power * y[i]);
}

RC_GTEST_PROP(OscarInvariants, VIII_ClippingCommutesWithPermutation, ()) {
  const int64_t d = AnyDim();
  const std::vector<float> x = FloatRow(d, AnySeed());
  const std::vector<int64_t> perm = BitReversalPermutation(d);
  for (const ClipMethod method : {ClipMethod::kSort, ClipMethod::kBisect}) {
    const float threshold = ClipThreshold<float>(x, 0.92, method);
    RC_ASSERT(ClipThreshold<float>(Permuted(x, perm), 0.92, method) == threshold);
    std::vector<float> first = Permuted(x, perm);
    ClampRow<float>(first, threshold);
    std::vector<float> second = x;
    ClampRow<float>(second, threshold);
    RC_ASSERT(first == Permuted(second, perm));
  }
}

}  // namespace
}  // namespace oscar
