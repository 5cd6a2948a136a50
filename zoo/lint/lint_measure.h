// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Measurements for lint's findings, on plain arrays. Trap: the numbers come from untrusted files,
// so a check must also fail if a value is NaN.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "linalg/rotation.h"
#include "zoo/lint/lint.h"

namespace oscar {

// Adds findings to a report.
class LintSink {
 public:
  explicit LintSink(LintReport* report) : report_(report) {}
  void Add(std::string_view rule, LintPlace place, std::string found, std::string expected = "");
  size_t errors_of(const std::filesystem::path& file) const;

 private:
  LintReport* report_;
};

// Adds the findings not-finite and not-orthogonal for each head. `values`: [count, dim, dim]
// row-major. `limit`: the largest accepted max|R R^T - I|; 0 if R need not be orthogonal.
void LintRotations(std::span<const float> values, int64_t count, int64_t dim, double limit,
                   const LintPlace& place, LintSink* sink);

// Adds the findings not-finite, negative-eigenvalue, degenerate and few-tokens for each head.
// `values`: [count, dim], in any order. Equal eigenvalues get no finding, because they come from
// rotations that were made without data.
//
// The rank is the number of eigenvalues above kRankFloor times the largest. Upstream accumulates in
// float64, so a direction that no token used has an eigenvalue of about 1e-16 times the largest.
// The eigenvalues of a published calibration go down to 6e-6 times the largest.
inline constexpr double kRankFloor = 1e-10;
inline constexpr double kDegenerateShare = 0.9;  // share of the dimension; a lower rank is an error
void LintSpectrum(std::span<const float> values, int64_t count, int64_t dim, const LintPlace& place,
                  LintSink* sink);
int64_t NumericalRank(std::span<const float> eigenvalues);

// Returns how well the subspaces of the heads' leading k = dim / 8 eigenvectors agree: the mean
// over pairs of |U_i^T U_j|_F^2 / k, scaled so that 0 is the expectation for random subspaces and 1
// means equal. Returns 1 for a single head. Throws InputError for a composition without U.
// `rotations`: [count, dim, dim]; `eigenvalues`: [count, dim], ascending or descending.
double HeadAgreement(std::span<const float> rotations, std::span<const float> eigenvalues,
                     int64_t count, int64_t dim, Composition composition);

// Returns the mean of |diag(R_i^T R_j)| over pairs: 1 for equal rotations, about
// RandomDiagonal(dim) for unrelated ones.
double MeanDiagonal(std::span<const float> rotations, int64_t count, int64_t dim);
double RandomDiagonal(int64_t dim);  // sqrt(2 / (pi dim))

// Describes the gaps in ascending layer ids: "" if they are contiguous or evenly spaced.
std::string LayerGap(const std::vector<int64_t>& ids);

// Formats layer ids like "3, 5, 6 and 12 more".
std::string ListIds(const std::vector<int64_t>& ids);

}  // namespace oscar
