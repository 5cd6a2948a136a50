// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/foreign_rotations.h"

#include <gtest/gtest.h>

#include "calib/moments/moments_file.h"
#include "export/formats/rotation_pair.h"
#include "linalg/error.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/export/formats/float_tensor.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

TEST(ForeignRotations, ExportHoldsTheArtifactsMatrices) {
  const fs::path scratch = TestScratch("foreign");
  WriteSampleArtifact(scratch / "a");
  const Artifact artifact = Artifact::Open(scratch / "a");
  WriteSglang(scratch / "sglang", ToSglang(artifact));
  const RotationPair pair = OpenRotationPair(scratch / "sglang" / "k_rotation_qqt_r_h_pbr.pt",
                                             scratch / "sglang" / "v_rotation_sst_r_h_pbr.pt");
  ASSERT_EQ(pair.k.layers.size(), 2u);
  EXPECT_EQ(pair.k.layers[1].layer_id, 11);
  EXPECT_EQ(Doubles(pair.k.layers[1].rotation), artifact.ReadLayer(11).k_shared.rotation);
  EXPECT_EQ(pair.v.layers[0].eigenvalues->values, artifact.ReadLayer(3).v_shared.eigenvalues);
  const RotationPair heads =
      OpenRotationPair(scratch / "sglang" / "perhead" / "k_rotation_perhead.pt",
                       scratch / "sglang" / "perhead" / "v_rotation_perhead.pt");
  EXPECT_EQ(Doubles(heads.v.layers[0].rotation), artifact.ReadLayer(3).v.rotation);
}

// v1 files out and in again: the covariances come back, so the refit equals the file.
TEST(ForeignRotations, ImportRecoversTheCovariances) {
  const fs::path scratch = TestScratch("foreign");
  WriteSampleArtifact(scratch / "a");
  WriteSglang(scratch / "sglang", ToSglang(Artifact::Open(scratch / "a")));
  ImportPair(scratch / "sglang" / "k_rotation_qqt_r_h_pbr.pt",
             scratch / "sglang" / "v_rotation_sst_r_h_pbr.pt", {}, {}, scratch / "imported");
  const LayerMoments moments = MomentsReader(scratch / "imported" / "moments.safetensors").Read(11);
  const LayerMoments original = SampleLayer(1, 1).moments;
  const Matrix mean = MeanOverHeads({original.QueryCovariance(0), original.QueryCovariance(1)});
  EXPECT_LT((moments.QueryCovariance(0) - mean).norm(), 1e-6 * mean.norm());
  EXPECT_TRUE(moments.key.empty());
  const StoredLayer before = Artifact::Open(scratch / "a").ReadLayer(11),
                    after = Artifact::Open(scratch / "imported").ReadLayer(11);
  for (size_t i = 0; i < before.k_shared.rotation.size(); ++i)
    EXPECT_NEAR(before.k_shared.rotation[i], after.k.rotation[i], 1e-4);
  EXPECT_EQ(Artifact::Open(scratch / "imported").manifest().at("calibration").at("value_target"),
            "attention_output");
}

TEST(ForeignRotations, PerHeadFilesHoldNoEigenvaluesAndAreRefused) {
  const fs::path scratch = TestScratch("foreign");
  WriteSampleArtifact(scratch / "a");
  WriteSglang(scratch / "sglang", ToSglang(Artifact::Open(scratch / "a")));
  EXPECT_THROW(ImportPair(scratch / "sglang" / "perhead" / "k_rotation_perhead.pt",
                          scratch / "sglang" / "perhead" / "v_rotation_perhead.pt", {}, {},
                          scratch / "imported"),
               InputError);
  EXPECT_FALSE(fs::exists(scratch / "imported"));
}

TEST(ForeignRotations, InspectionListsTheTensorsAndTheIdentity) {
  const fs::path scratch = TestScratch("foreign");
  WriteSampleArtifact(scratch / "a");
  const Json report = InspectArtifact(scratch / "a");
  EXPECT_EQ(report.at("format"), "artifact");
  EXPECT_EQ(report.at("identity").get<std::string>(), Artifact::Open(scratch / "a").identity());
  EXPECT_TRUE(report.at("tensors").contains("layer.3.k.rotation"));
}

}  // namespace
}  // namespace oscar
