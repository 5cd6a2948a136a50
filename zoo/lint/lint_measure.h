// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Measurements for lint's findings, on plain arrays. Trap: the numbers may be hostile, so every
// comparison must fail on NaN.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "linalg/rotation.h"
#include "zoo/lint/lint.h"

namespace oscar {

// Adds findings to a report for one place.
class LintSink {
 public:
  explicit LintSink(LintReport* report) : report_(report) {}
  void Add(std::string_view rule, LintPlace place, std::string found, std::string expected = "");
  size_t errors_of(const std::filesystem::path& file) const;

 private:
  LintReport* report_;
};

// Reports not-finite and not-orthogonal, per head. `values`: [count, dim, dim] row-major. `limit`:
// the largest accepted max|R R^T - I|, or 0 if the matrix need not be orthogonal.
void LintRotations(std::span<const float> values, int64_t count, int64_t dim, double limit,
                   const LintPlace& place, LintSink* sink);

// Reports not-finite, negative-eigenvalue, degenerate and few-tokens, per head. `values`: [count,
// dim], any order. Nothing follows from eigenvalues that are all equal or zero (data-free files).
// The rank counts eigenvalues above kRankFloor times the largest. Upstream sums in float64, so
// directions that no token used have about 1e-16; the flattest published spectrum ends at 6e-6.
inline constexpr double kRankFloor = 1e-10;
inline constexpr double kDegenerateShare = 0.9;  // share of the dimension; a lower rank is an error
void LintSpectrum(std::span<const float> values, int64_t count, int64_t dim, const LintPlace& place,
                  LintSink* sink);
int64_t NumericalRank(std::span<const float> eigenvalues);

// Measures how far the heads' leading eigenvectors (an eighth of the dimension) span the same
// subspace: mean over pairs of |U_i^T U_j|_F^2 / k, from chance level (0) to equal (1). Rotations
// [count, dim, dim], eigenvalues [count, dim] ascending. 1 for a single head. Throws InputError for
// a composition without U.
double HeadAgreement(std::span<const float> rotations, std::span<const float> eigenvalues,
                     int64_t count, int64_t dim, Composition composition);

// Mean |diag(R_i^T R_j)| over pairs: 1 for equal rotations, RandomDiagonal(dim) for unrelated ones.
double MeanDiagonal(std::span<const float> rotations, int64_t count, int64_t dim);
double RandomDiagonal(int64_t dim);  // sqrt(2 / (pi dim))

// Describes the gaps in ascending layer ids: "" if they are contiguous or evenly spaced.
std::string LayerGap(const std::vector<int64_t>& ids);

// Formats layer ids like "3, 5, 6 and 12 more".
std::string ListIds(const std::vector<int64_t>& ids);

}  // namespace oscar
