// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests files for the loader of vLLM's pull request 46774. It reads
// payload["layers"][id]["rotation"] and requires the shape [d, d].
#include <gtest/gtest.h>

#include "export/artifact/foreign_rotations.h"
#include "export/formats/rotation_pair.h"
#include "export/runtimes/exporter.h"
#include "tests/export/artifact/chosen_artifact.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/export/runtimes/exporter_named.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

TEST(VllmFiles, HoldTheChoice) {
  const fs::path scratch = TestScratch("vllm-chosen");
  const std::vector<SampleRecipe> recipes(2, SampleRecipes()[0]);
  WriteChosenArtifact(scratch / "a", recipes, {.consumer = Consumer::kVllm, .fold = false});
  const Artifact artifact = Artifact::Open(scratch / "a");
  WriteForRuntime(ExporterNamed("vllm"), artifact, {}, scratch / "out");
  const auto files = FindRotationPair(scratch / "out").value();
  const RotationPair pair = OpenRotationPair(files.first, files.second);
  ASSERT_EQ(pair.k.layers.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    const StoredChoice choice = artifact.ReadChoice(static_cast<int>(i), kHeadlineChoice);
    EXPECT_EQ(pair.k.layers[i].rotation->values,
              std::vector<float>(choice.k.rotation.begin(), choice.k.rotation.end()));
    EXPECT_EQ(pair.v.layers[i].rotation->values,
              std::vector<float>(choice.v.rotation.begin(), choice.v.rotation.end()));
    EXPECT_EQ(pair.k.layers[i].rotation->shape, (std::vector<int64_t>{8, 8}));
  }
  const std::string launch = ReadText(scratch / "out" / "launch.txt");
  for (const char* said : {"VLLM_OSCAR_K_ROTATION_PATH=/", "VLLM_OSCAR_K_CLIP_RATIO=0.92 ",
                           "VLLM_OSCAR_V_CLIP_RATIO=0.9 ", "VLLM_OSCAR_GROUP_SIZE=8 ",
                           "--kv-cache-dtype oscar_int2", "# Starts vLLM", "pull request 46774"})
    EXPECT_NE(launch.find(said), std::string::npos) << said << "\n" << launch;
  EXPECT_EQ(launch.find("SGLANG"), std::string::npos);
}

TEST(VllmFiles, HoldOneRotationPerLayerOfOscarsOwn) {
  const fs::path scratch = TestScratch("vllm-own");
  WriteSampleArtifact(scratch / "a");
  const Artifact artifact = Artifact::Open(scratch / "a");
  WriteForRuntime(ExporterNamed("vllm"), artifact, {.chosen = false}, scratch / "out");
  EXPECT_FALSE(fs::exists(scratch / "out" / "perhead"));
  const auto files = FindRotationPair(scratch / "out").value();
  const RotationPair pair = OpenRotationPair(files.first, files.second);
  EXPECT_EQ(pair.k.kind, RotationKind::kV1);
  EXPECT_EQ(pair.k.layers.at(1).rotation->values, ToSglang(artifact).layers.at(1).k.shared->values);
}

}  // namespace
}  // namespace oscar
