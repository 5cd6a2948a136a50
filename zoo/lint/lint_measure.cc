// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/lint/lint_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace oscar {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix HeadMatrix(std::span<const float> values, int64_t head, int64_t dim) {
  return Eigen::Map<const RowMajor>(values.data() + head * dim * dim, dim, dim).cast<double>();
}

// Returns the index of the first value that is not finite, or -1.
int64_t FirstNotFinite(std::span<const float> values) {
  const auto found =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  return found == values.end() ? -1 : found - values.begin();
}

LintPlace WithHead(LintPlace place, int64_t head, int64_t count) {
  if (count > 1) place.head = head;
  return place;
}

}  // namespace

void LintSink::Add(std::string_view rule, LintPlace place, std::string found,
                   std::string expected) {
  report_->findings.push_back(
      {&LintRuleNamed(rule), std::move(place), std::move(found), std::move(expected)});
}

size_t LintSink::errors_of(const std::filesystem::path& file) const {
  return static_cast<size_t>(std::count_if(
      report_->findings.begin(), report_->findings.end(), [&](const LintFinding& finding) {
        return finding.place.file == file && finding.rule->severity == Severity::kError;
      }));
}

void LintRotations(std::span<const float> values, int64_t count, int64_t dim, double limit,
                   const LintPlace& place, LintSink* sink) {
  for (int64_t head = 0; head < count; ++head) {
    const auto size = static_cast<size_t>(dim * dim);
    const int64_t bad = FirstNotFinite(values.subspan(static_cast<size_t>(head) * size, size));
    if (bad >= 0) {
      const float value = values[static_cast<size_t>(head * dim * dim + bad)];
      sink->Add("not-finite", WithHead(place, head, count),
                fmt::format("rotation holds {} at row {}, column {}", value, bad / dim, bad % dim));
    } else if (limit > 0) {
      const double error = OrthogonalityResidual(HeadMatrix(values, head, dim).transpose());
      if (!(error <= limit)) {
        sink->Add("not-orthogonal", WithHead(place, head, count),
                  fmt::format("max|R Rt - I| is {:.3g}", error),
                  fmt::format("at most {:.0e}", limit));
      }
    }
  }
}

int64_t NumericalRank(std::span<const float> eigenvalues) {
  const double largest = *std::max_element(eigenvalues.begin(), eigenvalues.end());
  return std::count_if(eigenvalues.begin(), eigenvalues.end(),
                       [&](float value) { return value > kRankFloor * largest; });
}

void LintSpectrum(std::span<const float> values, int64_t count, int64_t dim, const LintPlace& place,
                  LintSink* sink) {
  for (int64_t head = 0; head < count; ++head) {
    const auto spectrum = values.subspan(static_cast<size_t>(head * dim), static_cast<size_t>(dim));
    const LintPlace at = WithHead(place, head, count);
    if (const int64_t bad = FirstNotFinite(spectrum); bad >= 0) {
      sink->Add("not-finite", at,
                fmt::format("eigenvalue {} is {}", bad, spectrum[static_cast<size_t>(bad)]));
      continue;
    }
    const auto [smallest, largest] = std::minmax_element(spectrum.begin(), spectrum.end());
    if (*smallest < -1e-6 * std::abs(static_cast<double>(*largest))) {
      sink->Add("negative-eigenvalue", at, fmt::format("the smallest is {:.3g}", *smallest),
                fmt::format("none below 0 (largest {:.3g})", *largest));
    } else if (*largest > *smallest) {
      const int64_t rank = NumericalRank(spectrum);
      const bool degenerate =
          static_cast<double>(rank) < kDegenerateShare * static_cast<double>(dim);
      if (rank < dim) {
        sink->Add(degenerate ? "degenerate" : "few-tokens", at,
                  fmt::format("covariance has rank {}", rank),
                  fmt::format("{}; calibrate with more tokens", dim));
      }
    }
  }
}

double HeadAgreement(std::span<const float> rotations, std::span<const float> eigenvalues,
                     int64_t count, int64_t dim, Composition composition) {
  if (count < 2 || dim < 2) return 1;
  const int64_t k = std::max<int64_t>(1, dim / 8);
  std::vector<Matrix> leading;  // [dim, k]
  for (int64_t head = 0; head < count; ++head) {
    const Matrix u = RecoverEigenvectors(HeadMatrix(rotations, head, dim), composition);
    const float* values = eigenvalues.data() + head * dim;
    const bool ascending = values[0] <= values[dim - 1];
    leading.push_back(ascending ? u.rightCols(k) : u.leftCols(k));
  }
  double sum = 0;
  int64_t pairs = 0;
  for (size_t i = 0; i < leading.size(); ++i) {
    for (size_t j = i + 1; j < leading.size(); ++j, ++pairs)
      sum += (leading[i].transpose() * leading[j]).squaredNorm() / static_cast<double>(k);
  }
  const double chance = static_cast<double>(k) / static_cast<double>(dim);
  return (sum / static_cast<double>(pairs) - chance) / (1 - chance);
}

double MeanDiagonal(std::span<const float> rotations, int64_t count, int64_t dim) {
  double sum = 0;
  int64_t pairs = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Matrix a = HeadMatrix(rotations, i, dim);
    for (int64_t j = i + 1; j < count; ++j, ++pairs)
      sum += a.cwiseProduct(HeadMatrix(rotations, j, dim)).colwise().sum().cwiseAbs().mean();
  }
  return pairs == 0 ? 1 : sum / static_cast<double>(pairs);
}

double RandomDiagonal(int64_t dim) {
  return std::sqrt(2 / (std::numbers::pi * static_cast<double>(dim)));
}

std::string LayerGap(const std::vector<int64_t>& ids) {
  for (size_t i = 2; i < ids.size(); ++i) {
    if (ids[i] - ids[i - 1] != ids[1] - ids[0])
      return fmt::format("layer {} comes after {}", ids[i], ids[i - 1]);
  }
  return "";
}

std::string ListIds(const std::vector<int64_t>& ids) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(ids.size(), kShown); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ids[i]);
  if (ids.size() > kShown) text += fmt::format(" and {} more", ids.size() - kShown);
  return text;
}

}  // namespace oscar
