// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that sums become what save_moments writes: M_q and S_v are means, k_sum and M_k are sums.
#include <gtest/gtest.h>

#include "export/artifact/artifact_reader.h"
#include "export/formats/rotation_file.h"
#include "export/runtimes/exporter.h"
#include "linalg/base/error.h"
#include "tests/calib/moments/sample_moments.h"
#include "tests/export/artifact/chosen_artifact.h"
#include "tests/export/runtimes/exporter_named.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

RotationFile Written(const std::function<LayerMoments(int)>& moments) {
  const fs::path scratch = TestScratch("upstream-moments");
  const std::vector<SampleRecipe> recipes(2, SampleRecipes()[0]);
  WriteChosenArtifact(scratch / "a", recipes, {.fold = false}, moments);
  WriteForRuntime(ExporterNamed("upstream-moments"), Artifact::Open(scratch / "a"), {},
                  scratch / "out");
  return OpenRotationFile(scratch / "out" / "oscar_moments_rank0.pt");
}

TEST(UpstreamMomentsFiles, HoldMeansAndSums) {
  const auto moments = [](int id) { return SampleMoments(id, 60, 4 + static_cast<unsigned>(id)); };
  const RotationFile read = Written(moments);
  ASSERT_EQ(read.moments.size(), 2U);
  for (int id = 0; id < 2; ++id) {
    const LayerMoments sums = moments(id);
    const MomentLayer& layer = read.moments[static_cast<size_t>(id)];
    EXPECT_EQ(layer.count, 60);
    EXPECT_EQ(layer.m_k, sums.key);
    EXPECT_EQ(layer.k_sum, sums.key_sum);
    for (size_t i = 0; i < sums.query.size(); ++i) EXPECT_EQ(layer.m_q[i], sums.query[i] / 120);
    for (size_t i = 0; i < sums.diagonal.size(); ++i)
      EXPECT_EQ(layer.s_v[i], sums.diagonal[i] / sums.diagonal_weight[i / 16]);
  }
}

TEST(UpstreamMomentsFiles, AreOfEqualLayers) {
  const auto refused = [](int64_t d, int64_t dv, int64_t tokens) {
    return ErrorOf<InputError>([&] {
      Written([&](int id) {
        return id == 0 ? SampleMoments(0, 60, 4) : SampleMoments(1, tokens, 5, d, dv);
      });
    });
  };
  EXPECT_EQ(refused(8, 4, 60), "");
  EXPECT_TRUE(Says(refused(16, 4, 60), "layer 1 differs from layer 0"));
  EXPECT_TRUE(Says(refused(8, 8, 60), "layer 1 differs from layer 0"));
  EXPECT_TRUE(Says(refused(8, 4, 61), "layer 1 differs from layer 0"));
}

}  // namespace
}  // namespace oscar
