// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares covariances, spectra and importance with the oracle, whose scalars have 12 digits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "linalg/eigh.h"
#include "linalg/hadamard.h"
#include "tests/linalg/oracle_pack.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

constexpr double kDigits = 2e-11;  // relative tolerance

void ExpectSpectrum(const Vector& actual, const Json& expected) {
  const std::vector<double> values = JsonDoubles(expected);
  ASSERT_EQ(static_cast<size_t>(actual.size()), values.size());
  const double largest = values.back();
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(actual[static_cast<Eigen::Index>(i)], values[i],
                1e-14 * largest + kDigits * values[i]);
  }
}

TEST(Oracle, CovariancesOfEveryHead) {
  OSCAR_PACK_OR_SKIP(path, "oracle");
  size_t compared = 0;
  for (const OracleModel& model : ReadOracle(path)) {
    for (const OracleLayer& layer : model.layers) {
      SCOPED_TRACE(fmt::format("{}, layer {}", model.name, layer.id));
      const std::vector<HeadStatistics> heads = StatisticsOf(layer);
      for (const auto& [name, trace] : layer.expected.at("trace").items()) {
        const auto member = StatisticNamed(name);
        const std::vector<double> traces = JsonDoubles(trace.at("heads"));
        ASSERT_EQ(traces.size(), heads.size());
        for (size_t h = 0; h < heads.size(); ++h) {
          EXPECT_NEAR((heads[h].*member).trace() / traces[h], 1, kDigits) << name;
        }
        EXPECT_NEAR(MeanOverHeads(heads, member).trace() / trace.at("layer").get<double>(), 1,
                    kDigits)
            << name;
        if (!model.moments) continue;
        const auto stored =
            ReadTensor<double>(*model.moments, fmt::format("layer.{}.{}", layer.id, name));
        for (size_t h = 0; h < heads.size(); ++h) {
          const Matrix& actual = heads[h].*member;
          const Eigen::Map<const Matrix> expected(stored.data() + h * actual.size(), actual.rows(),
                                                  actual.cols());
          EXPECT_LE((actual - expected).norm() / expected.norm(), 1e-13) << name << ", head " << h;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 0U);
}

TEST(Oracle, SpectraImportanceAndFlatness) {
  OSCAR_PACK_OR_SKIP(path, "oracle");
  for (const OracleModel& model : ReadOracle(path)) {
    for (const OracleLayer& layer : model.layers) {
      const std::vector<HeadStatistics> heads = StatisticsOf(layer);
      for (const auto& [name, spectrum] : layer.expected.at("eigenvalues_layer").items()) {
        SCOPED_TRACE(fmt::format("{}, layer {}, {}", model.name, layer.id, name));
        const Matrix c = MeanOverHeads(heads, StatisticNamed(name));
        const Eigenbasis basis = SymmetricEigenbasis(c, "oracle");
        ExpectSpectrum(basis.eigenvalues, spectrum);
        EXPECT_NEAR(basis.min_relative_gap,
                    layer.expected.at("min_relative_gap_layer").at(name).get<double>(), 1e-12);
        for (size_t h = 0; h < heads.size(); ++h) {
          ExpectSpectrum(SymmetricEigenbasis(heads[h].*StatisticNamed(name), "oracle").eigenvalues,
                         layer.expected.at("eigenvalues_heads").at(name).at(h));
        }

        const int64_t d = c.rows();
        const Rotation uhp = Compose(basis, Composition::kRHPbr);
        const auto expect_importance = [&](const Matrix& r, const char* arm) {
          const double expected =
              layer.expected.at("importance_max_over_mean").at(name).at(arm).get<double>();
          EXPECT_NEAR(ImportanceMaxOverMean(r, c) / expected, 1, kDigits) << arm;
        };
        expect_importance(Matrix::Identity(d, d), "identity");
        expect_importance(BlockHadamard(d), "hadamard");
        expect_importance(basis.eigenvectors, "U");
        expect_importance(Compose(basis, Composition::kRH).matrix(), "U_H");
        expect_importance(uhp.matrix(), "U_H_P");

        const double flat = layer.expected.at("diagonal_of_rotated")
                                .at(name)
                                .at("expected_trace_over_d")
                                .get<double>();
        EXPECT_NEAR(c.trace() / static_cast<double>(d) / flat, 1, kDigits);
        const Vector importance = Importance(uhp.matrix(), c);
        EXPECT_LE((importance.array() / importance.mean() - 1).abs().maxCoeff(), 1e-12);
        const Matrix u = RecoverEigenvectors(uhp.matrix(), Composition::kRHPbr);
        Matrix diagonalized = u.transpose() * c * u;
        diagonalized.diagonal() -= basis.eigenvalues;
        EXPECT_LE(diagonalized.cwiseAbs().maxCoeff() / basis.eigenvalues[d - 1], 1e-13);
      }
    }
  }
}

}  // namespace
}  // namespace oscar
