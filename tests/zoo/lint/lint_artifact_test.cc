// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests lint on our own artifacts and zoos.
#include "zoo/lint/lint_artifact.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "export/artifact/artifact_format.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/support/test_data.h"
#include "tests/zoo/sample_zoo.h"
#include "zoo/keep/publish.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

bool Has(const LintReport& report, std::string_view rule) {
  for (const LintFinding& finding : report.findings)
    if (finding.rule->name == rule) return true;
  return false;
}

std::string Lines(const LintReport& report) {
  std::string text;
  for (const LintFinding& finding : report.findings) text += LintLine(finding) + "\n";
  return text;
}

// Writes an artifact with the sample's two layers, changed by `edit`.
void WriteEdited(const fs::path& path, const std::function<void(LayerResult&)>& edit) {
  WriteArtifact(path, SampleInfo(), {2, [&](size_t index) {
                                       LayerResult layer = SampleLayer(index, 1);
                                       edit(layer);
                                       return layer;
                                     }});
}

TEST(LintArtifact, AValidatedOneHasNoErrors) {
  const fs::path path = TestScratch("lint-artifact") / "a";
  WriteValidated(path);
  const LintReport report = Lint({path}, {});
  EXPECT_FALSE(report.has_errors()) << Lines(report);
  EXPECT_FALSE(Has(report, "not-validated"));
  EXPECT_TRUE(Has(report, "few-tokens"));  // 50 tokens for a dimension of 8
}

TEST(LintArtifact, OneThatWasNeverValidatedIsAWarning) {
  const fs::path path = TestScratch("lint-artifact") / "a";
  WriteSampleArtifact(path);
  const LintReport report = Lint({path}, {});
  EXPECT_TRUE(Has(report, "not-validated")) << Lines(report);
  EXPECT_FALSE(report.has_errors());
}

TEST(LintArtifact, AFailedGateIsAnError) {
  const fs::path path = TestScratch("lint-artifact") / "a";
  WriteValidated(path, 1, [](Json& v) { v["gate"]["text"] = "kl<=0.001"; });
  EXPECT_TRUE(Has(Lint({path}, {}), "gate-failed"));
}

TEST(LintArtifact, EveryBadHeadHasItsFinding) {
  const fs::path path = TestScratch("lint-artifact") / "a";
  WriteEdited(path, [](LayerResult& layer) {
    layer.k.rotation[0] += 1e-3;     // head 0
    layer.v.rotation[16 + 3] = NAN;  // head 1
    layer.v_shared.eigenvalues[0] = -1;
  });
  const LintReport report = Lint({path}, {});
  ASSERT_GE(report.findings.size(), 3u);
  EXPECT_EQ(LintLine(report.findings[0])
                .find("error OZ013 not-orthogonal: " + path.string() +
                      ": layer 3, k, head 0: max|R Rt - I| is"),
            0u)
      << Lines(report);
  EXPECT_TRUE(Has(report, "not-finite"));
  EXPECT_TRUE(Has(report, "negative-eigenvalue"));
}

// These rotations are orthogonal, finite, paired and have the right digests. Only the moments
// reveal that they are wrong.
TEST(LintArtifact, RotationsOfOtherHeadsAreAnError) {
  const fs::path path = TestScratch("lint-artifact") / "a";
  WriteEdited(path, [](LayerResult& layer) {
    auto& r = layer.k.rotation;
    const auto half = static_cast<std::ptrdiff_t>(r.size() / 2);
    std::swap_ranges(r.begin(), r.begin() + half, r.begin() + half);
  });
  const LintReport report = Lint({path}, {});
  ASSERT_TRUE(Has(report, "artifact-damaged")) << Lines(report);
  EXPECT_NE(Lines(report).find("does not belong to the covariance"), std::string::npos);
}

TEST(LintArtifact, TooFewTokensShowInTheSpectrum) {
  const fs::path path = TestScratch("lint-artifact") / "a";
  WriteEdited(path, [](LayerResult& layer) {
    for (size_t i = 0; i < 4; ++i) layer.k.eigenvalues[i] = 1e-18;  // 4 of 8 values of head 0
  });
  const LintReport report = Lint({path}, {});
  ASSERT_TRUE(Has(report, "degenerate")) << Lines(report);
  EXPECT_EQ(report.findings[0].place.head, 0);
}

TEST(LintArtifact, DamageIsAnErrorAndNotAnException) {
  const fs::path path = TestScratch("lint-artifact") / "a";
  WriteValidated(path);
  WriteText(path / kReportPageFile, "other");
  EXPECT_TRUE(Has(Lint({path}, {}), "artifact-damaged"));
  WriteText(path / kManifestFile, "{");
  EXPECT_TRUE(Has(Lint({path}, {}), "artifact-damaged"));
}

// Compares two heads with equal leading directions, then two whose leading directions are disjoint.
TEST(LintArtifact, HeadsAgreeFromChanceToEquality) {
  constexpr int64_t kDim = 32;
  const Matrix identity = Matrix::Identity(kDim, kDim);
  std::vector<float> rotations, eigenvalues;
  const auto add = [&](int64_t shift) {  // eigenvectors are shifted axes
    for (int64_t i = 0; i < kDim; ++i)
      for (int64_t j = 0; j < kDim; ++j)
        rotations.push_back(static_cast<float>(identity(i, (j + shift) % kDim)));
    for (int64_t i = 0; i < kDim; ++i) eigenvalues.push_back(static_cast<float>(i + 1));
  };
  add(0);
  add(0);
  EXPECT_NEAR(HeadAgreement(rotations, eigenvalues, 2, kDim, Composition::kPlain), 1, 1e-12);
  EXPECT_NEAR(MeanDiagonal(rotations, 2, kDim), 1, 1e-12);
  rotations.resize(kDim * kDim);
  eigenvalues.resize(kDim);
  add(kDim / 2);
  EXPECT_LT(HeadAgreement(rotations, eigenvalues, 2, kDim, Composition::kPlain), 0);
  EXPECT_EQ(HeadAgreement(rotations, eigenvalues, 1, kDim, Composition::kPlain), 1);
}

TEST(LintArtifact, ASharedRotationThatMeasuresWorseIsAWarning) {
  const fs::path path = TestScratch("lint-artifact") / "a";
  const auto write = [&](double shared) {
    fs::remove_all(path);
    WriteEdited(path, [&](LayerResult& layer) {
      ArmResult arm = layer.arms[0];
      arm.kl_mean = 0.02;
      arm.name = "oscar_per_head";
      layer.arms.push_back(arm);
      arm.kl_mean = shared;
      arm.name = "oscar_shared";
      layer.arms.push_back(arm);
    });
  };
  const auto measured = [&] {
    for (const LintFinding& finding : Lint({path}, {}).findings)
      if (finding.found.starts_with("attention-KL")) return true;
    return false;
  };
  write(0.04);
  EXPECT_TRUE(measured());
  write(0.021);
  EXPECT_FALSE(measured());
}

TEST(LintZoo, LooksAtEntriesAndNamesThem) {
  const fs::path scratch = TestScratch("lint-zoo");
  const Zoo zoo = NewZoo(scratch / "zoo");
  WriteValidated(scratch / "a");
  const ZooEntry entry = Publish(zoo, scratch / "a", {}, {}).entry;
  const fs::path file = EntryPath(zoo.path(), entry.name, entry.version);
  for (const fs::path& path : {zoo.path(), file}) {
    const LintReport report = Lint({path}, {});
    EXPECT_FALSE(report.has_errors()) << Lines(report);
    ASSERT_FALSE(report.findings.empty());  // at least few-tokens
    EXPECT_EQ(report.findings[0].place.file, file);
  }
  WriteText(BlobPath(zoo.path(), entry.files.at(kReportFile).sha256), "x");
  EXPECT_TRUE(Has(Lint({zoo.path()}, {}), "zoo-damaged"));
  EXPECT_TRUE(Has(Lint({file}, {}), "zoo-damaged"));
}

}  // namespace
}  // namespace oscar
