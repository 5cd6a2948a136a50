// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "calib/layer_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "calib/fit.h"
#include "calib/moments_file.h"
#include "linalg/error.h"
#include "tests/calib/sample_moments.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::string Bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

LayerResult Sample() {
  LayerResult result = RefitLayer(SampleMoments(5, 60, 4), {}, {});
  result.clip_candidates = {0.9, 1.0};
  result.k.clip_error = {0.2, 0.1};
  result.v.clip_threshold = {1.5, 2.5};
  ArmResult arm;
  arm.name = "naive";
  arm.rows = 17;
  arm.rows_beyond = 3;
  arm.kl_mean = 0.125;
  arm.output_rel_error_no_windows = 0.75;
  result.arms = {arm};
  return result;
}

TEST(LayerFile, RoundTripIsExact) {
  const fs::path path = TestScratch("layer") / "layer.h5";
  const LayerResult wrote = Sample();
  WriteLayerFile(path, wrote);
  const LayerResult read = ReadLayerFile(path);
  EXPECT_EQ(read.moments.layer_id, 5);
  EXPECT_EQ(read.moments.query, wrote.moments.query);
  EXPECT_EQ(read.moments.key_sum, wrote.moments.key_sum);
  EXPECT_EQ(read.moments.diagonal_weight, wrote.moments.diagonal_weight);
  EXPECT_EQ(read.k.rotation, wrote.k.rotation);
  EXPECT_EQ(read.k.clip_error, wrote.k.clip_error);
  EXPECT_EQ(read.k_shared.eigenvalues, wrote.k_shared.eigenvalues);
  EXPECT_EQ(read.v.clip_threshold, wrote.v.clip_threshold);
  EXPECT_EQ(read.v_shared.min_relative_gap, wrote.v_shared.min_relative_gap);
  EXPECT_EQ(read.clip_candidates, wrote.clip_candidates);
  ASSERT_EQ(read.arms.size(), 1u);
  EXPECT_EQ(read.arms[0].rows, 17);
  EXPECT_EQ(read.arms[0].kl_mean, 0.125);
  EXPECT_EQ(read.arms[0].output_rel_error_no_windows, 0.75);

  const fs::path again = path.parent_path() / "again.h5";
  WriteLayerFile(again, read);
  EXPECT_EQ(Bytes(path), Bytes(again));
}

TEST(MomentsFile, RoundTripAndIds) {
  const fs::path path = TestScratch("moments") / "moments.h5";
  MomentsWriter writer(path);
  writer.Add(SampleMoments(11, 30, 1));
  LayerMoments merged = SampleMoments(3, 30, 1);
  merged.Merge(SampleMoments(3, 30, 2));
  writer.Add(merged);
  writer.Commit();
  const MomentsReader reader(path);
  EXPECT_EQ(reader.layer_ids(), (std::vector<int>{3, 11}));
  EXPECT_EQ(reader.Read(11).diagonal, SampleMoments(11, 30, 1).diagonal);
  EXPECT_TRUE(reader.Read(3).diagonal.empty());
  EXPECT_EQ(reader.Read(3).tokens, 60);
  EXPECT_THROW(reader.Read(4), InputError);
}

TEST(MomentsFile, ALayerFileIsNotOne) {
  const fs::path path = TestScratch("moments") / "layer.h5";
  WriteLayerFile(path, Sample());
  EXPECT_THROW(MomentsReader reader(path), InputError);
}

}  // namespace
}  // namespace oscar
