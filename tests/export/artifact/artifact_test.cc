// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>

#include "export/artifact/artifact_format.h"
#include "export/artifact/artifact_reader.h"
#include "linalg/base/error.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

TEST(Artifact, ReadsBackWhatWasWritten) {
  const fs::path path = TestScratch("artifact") / "out";
  WriteSampleArtifact(path);
  const Artifact artifact = Artifact::Open(path);
  EXPECT_EQ(artifact.layer_ids(), (std::vector<int>{3, 11}));
  EXPECT_EQ(artifact.identity().size(), 64u);
  const StoredLayer stored = artifact.ReadLayer(11);
  const LayerResult layer = SampleLayer(1, 1);
  ASSERT_EQ(stored.k.num_rotations, 2);
  ASSERT_EQ(stored.k.rotation.size(), layer.k.rotation.size());
  for (size_t i = 0; i < layer.k.rotation.size(); ++i)
    EXPECT_EQ(stored.k.rotation[i], static_cast<float>(layer.k.rotation[i]));
  EXPECT_EQ(stored.v_shared.num_rotations, 1);
  EXPECT_EQ(stored.v_shared.eigenvalues[0], static_cast<float>(layer.v_shared.eigenvalues[0]));
  EXPECT_THROW(artifact.ReadLayer(4), InputError);
}

TEST(Artifact, NamesOfTensorsAndFirstKeyAreTheFormat) {
  const fs::path path = TestScratch("artifact") / "out";
  WriteSampleArtifact(path);
  const SafetensorsFile file = SafetensorsFile::Open(path / "rotations.safetensors");
  for (const char* name : {"layer.3.k.rotation", "layer.3.k.eigenvalues", "layer.3.k.clip_ratio",
                           "layer.3.k.clip_threshold", "layer.3.k.mean", "layer.3.v.rotation",
                           "layer.11.k.shared.rotation", "layer.11.v.shared.clip_ratio"}) {
    EXPECT_EQ(file.tensors().count(name), 1u) << name;
  }
  EXPECT_EQ(file.tensors().at("layer.3.v.rotation").shape, (std::vector<int64_t>{2, 4, 4}));
  EXPECT_EQ(file.tensors().at("layer.3.k.mean").shape, (std::vector<int64_t>{2, 8}));
  const std::string manifest = FileBytes(path).at("manifest.json");
  EXPECT_EQ(
      manifest.find("{\n \"$schema\": {\n  \"name\": \"oscar-artifact\",\n  \"version\": 2\n }"),
      0u)
      << manifest;
}

TEST(Artifact, EqualRunsGiveEqualBytesButForTimings) {
  const fs::path scratch = TestScratch("artifact");
  ArtifactInfo later = SampleInfo();
  later.timings = {{"seconds", 2}};
  WriteSampleArtifact(scratch / "a");
  WriteSampleArtifact(scratch / "b", 1, later);
  auto a = FileBytes(scratch / "a"), b = FileBytes(scratch / "b");
  EXPECT_NE(a.at("timings.json"), b.at("timings.json"));
  a.erase("timings.json");
  b.erase("timings.json");
  EXPECT_EQ(a.size(), 6u);
  EXPECT_TRUE(a == b);
  EXPECT_EQ(Artifact::Open(scratch / "a").identity(), Artifact::Open(scratch / "b").identity());
}

TEST(Artifact, EveryChangedOrMissingFileIsRefused) {
  const fs::path path = TestScratch("artifact") / "out";
  for (const char* victim : {"rotations.safetensors", "moments.safetensors", "report.json",
                             "report.html", "README.md"}) {
    fs::remove_all(path);
    WriteSampleArtifact(path);
    {
      std::fstream file(path / victim, std::ios::in | std::ios::out);
      file.seekg(100);
      const char old = static_cast<char>(file.get());
      file.seekp(100);
      file.put(static_cast<char>(old ^ 1));
    }
    EXPECT_THROW(Artifact::Open(path), InputError) << victim;
    fs::remove(path / victim);
    EXPECT_THROW(Artifact::Open(path), InputError) << victim;
  }
  fs::remove(path / "manifest.json");
  EXPECT_THROW(Artifact::Open(path), InputError);
  EXPECT_FALSE(Artifact::LooksLikeOne(path));
}

TEST(Artifact, NothingIsEverOverwritten) {
  const fs::path path = TestScratch("artifact") / "out";
  WriteSampleArtifact(path);
  const auto before = FileBytes(path);
  EXPECT_THROW(WriteSampleArtifact(path, 2), InputError);
  EXPECT_TRUE(before == FileBytes(path));
}

TEST(Artifact, AMatrixThatIsNotARotationIsRefusedOnReading) {
  const fs::path path = TestScratch("artifact") / "out";
  WriteArtifact(path, SampleInfo(), {1, [](size_t index) {
                                       LayerResult layer = SampleLayer(index, 1);
                                       layer.k.rotation[0] += 1e-3;
                                       return layer;
                                     }});
  EXPECT_THROW(Artifact::Open(path).ReadLayer(3), NumericalError);
}

TEST(Artifact, RecommendsTheClipRatioThatIsBestOverAllLayers) {
  const fs::path path = TestScratch("artifact") / "out";
  WriteSampleArtifact(path);  // summed errors 0.4, 0.4, 0.5; the larger ratio wins a tie
  EXPECT_EQ(Artifact::Open(path).manifest().at("serving").at("k_clip_ratio"), 0.96);
}

}  // namespace
}  // namespace oscar
