// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares our readers with torch.load on real and hostile rotation files.
#include <gtest/gtest.h>

#include "export/formats/rotation_pair.h"
#include "tests/export/formats/upstream_pack.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

TEST(Upstream, BundledFilesReadAsTorchReadsThem) {
  EXPECT_EQ(CheckExpectations(TestData("upstream/synthetic")), 9);
}

TEST(Upstream, BundledHostileFilesGetTheirVerdict) {
  EXPECT_EQ(CheckVerdicts(TestData("upstream/hostile")), 32);
}

TEST(Upstream, PackReadsAsTorchReadsIt) {
  OSCAR_PACK_OR_SKIP(path, "upstream");
  EXPECT_GE(CheckExpectations(path), 37);
}

TEST(Upstream, PackOfHostileFilesGetsItsVerdict) {
  OSCAR_PACK_OR_SKIP(path, "upstream/hostile");
  EXPECT_GE(CheckVerdicts(path), 160);
}

TEST(Upstream, PublishedPairsBelongTogether) {
  OSCAR_PACK_OR_SKIP(path, "upstream");
  int pairs = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (!entry.is_directory() || entry.path().string().find("hostile") != std::string::npos) {
      continue;
    }
    SCOPED_TRACE(entry.path().string());
    if (entry.path().filename().string().starts_with("vllm")) continue;  // has only K
    const auto files = FindRotationPair(entry.path());
    if (!files) continue;
    EXPECT_NO_THROW(OpenRotationPair(files->first, files->second));
    ++pairs;
  }
  EXPECT_GE(pairs, 14);
}

TEST(Upstream, MlaFoldersReadInOrderOfLayer) {
  OSCAR_PACK_OR_SKIP(path, "upstream/synthetic");
  const RotationFile bare = OpenMlaFolder(path / "mla-bare");
  ASSERT_EQ(bare.layers.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bare.layers[static_cast<size_t>(i)].layer_id, i);
  const RotationFile joint = OpenMlaFolder(path / "mla-joint");
  EXPECT_GT(joint.layers[0].orthogonality, 0.9);  // not orthogonal by design
  ASSERT_TRUE(joint.layers[0].q_inverse_error.has_value());
  EXPECT_LT(*joint.layers[0].q_inverse_error, 1e-6);
}

}  // namespace
}  // namespace oscar
