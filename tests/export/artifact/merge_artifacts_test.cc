// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/merge_artifacts.h"

#include <gtest/gtest.h>

#include "calib/moments/moments_file.h"
#include "export/artifact/artifact_reader.h"
#include "linalg/base/error.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

TEST(MergeArtifacts, AddsMomentsAndRefits) {
  const fs::path scratch = TestScratch("merge");
  WriteSampleArtifact(scratch / "a", 1);
  ArtifactInfo other = SampleInfo();
  other.data["digest"] = "another";
  WriteSampleArtifact(scratch / "b", 7, other);
  MergeArtifacts({scratch / "a", scratch / "b"}, {}, {{"name", "oscar"}}, scratch / "merged");
  const LayerMoments a = MomentsReader(scratch / "a" / "moments.safetensors").Read(11),
                     b = MomentsReader(scratch / "b" / "moments.safetensors").Read(11),
                     merged = MomentsReader(scratch / "merged" / "moments.safetensors").Read(11);
  EXPECT_EQ(merged.tokens, a.tokens + b.tokens);
  for (size_t i = 0; i < merged.query.size(); ++i)
    EXPECT_EQ(merged.query[i], a.query[i] + b.query[i]);
  EXPECT_TRUE(merged.diagonal.empty());
  const Json manifest = Artifact::Open(scratch / "merged").manifest();
  EXPECT_EQ(manifest.at("calibration").at("merged_from").size(), 2u);
  EXPECT_NO_THROW(Artifact::Open(scratch / "merged").ReadLayer(3));
}

TEST(MergeArtifacts, OneArtifactIsRefittedWithOtherChoices) {
  const fs::path scratch = TestScratch("merge");
  WriteSampleArtifact(scratch / "a");
  CalibrationOptions options;
  options.fit.composition = Composition::kPlain;
  options.fit.value_target = ValueTarget::kDiagonal;  // possible for a single run
  MergeArtifacts({scratch / "a"}, options, {}, scratch / "refit");
  const StoredLayer before = Artifact::Open(scratch / "a").ReadLayer(3),
                    after = Artifact::Open(scratch / "refit").ReadLayer(3);
  EXPECT_EQ(before.k.eigenvalues, after.k.eigenvalues);
  EXPECT_NE(before.k.rotation, after.k.rotation);
  EXPECT_NE(before.v.eigenvalues, after.v.eigenvalues);
}

TEST(MergeArtifacts, TheDiagonalTargetCannotBeMerged) {
  const fs::path scratch = TestScratch("merge");
  WriteSampleArtifact(scratch / "a", 1);
  WriteSampleArtifact(scratch / "b", 7);
  CalibrationOptions options;
  options.fit.value_target = ValueTarget::kDiagonal;
  EXPECT_TRUE(
      Says(ErrorOf<InputError>([&] {
             MergeArtifacts({scratch / "a", scratch / "b"}, options, {}, scratch / "merged");
           }),
           "each run's own tokens"));
  EXPECT_FALSE(fs::exists(scratch / "merged"));
}

TEST(MergeArtifacts, TheSameDataTwiceIsRefused) {
  const fs::path scratch = TestScratch("merge-twice");
  ArtifactInfo one = SampleInfo(), two = SampleInfo();
  one.data["digest"] = "one";
  two.data["digest"] = "two";
  WriteSampleArtifact(scratch / "a", 1, one);
  WriteSampleArtifact(scratch / "b", 7, two);
  WriteSampleArtifact(scratch / "c", 9, one);
  MergeArtifacts({scratch / "a", scratch / "b"}, {}, {}, scratch / "ab");
  for (const char* with : {"a", "ab"}) {  // alone, and as part of a merge
    EXPECT_TRUE(Says(ErrorOf<InputError>([&] {
                       MergeArtifacts({scratch / with, scratch / "c"}, {}, {}, scratch / "twice");
                     }),
                     "the same data"));
    EXPECT_FALSE(fs::exists(scratch / "twice"));
  }
}

TEST(MergeArtifacts, OtherModelsAreRefusedWithTheDifference) {
  const fs::path scratch = TestScratch("merge");
  ArtifactInfo other = SampleInfo();
  other.model["revision"] = "def";
  WriteSampleArtifact(scratch / "a");
  WriteSampleArtifact(scratch / "b", 1, other);
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] {
                     MergeArtifacts({scratch / "a", scratch / "b"}, {}, {}, scratch / "merged");
                   }),
                   "revision: was \"abc\", now \"def\""));
}

}  // namespace
}  // namespace oscar
