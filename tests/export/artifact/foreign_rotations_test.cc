// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/foreign_rotations.h"

#include <gtest/gtest.h>

#include "calib/moments/moments_file.h"
#include "export/formats/rotation_pair.h"
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
