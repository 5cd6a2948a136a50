// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/job/layer_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "calib/job/refit_layer.h"
#include "calib/moments/moments_file.h"
#include "linalg/base/error.h"
#include "tests/calib/choose/sample_choice.h"
#include "tests/calib/moments/sample_moments.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

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
  const fs::path path = TestScratch("layer") / "layer.safetensors";
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

  const fs::path again = path.parent_path() / "again.safetensors";
  WriteLayerFile(again, read);
  EXPECT_EQ(ReadText(path), ReadText(again));
}

AutoChoice EveryNumberSet(const LayerMoments& moments, const SampleRecipe& recipe) {
  AutoChoice choice = SampleChoice(moments, recipe);
  choice.context = 32768;
  choice.text_length = 2048;
  choice.k_bits = 4;
  choice.v_bits = 3;
  choice.k_check = 0.1;
  choice.k_hadamard = 0.2;
  choice.k_output_error = 0.07;
  choice.v_check = 0.3;
  choice.v_hadamard = 1.0 / 3;
  choice.v_fallback = "attention_output shared r_h_pbr";
  choice.rows = 48;
  choice.rows_in_windows = true;
  choice.refined = true;
  choice.refined_kl = 0.01;
  choice.unrefined_kl = 0.02;
  choice.stability = {
      .measured = true, .k_cost = 0.25, .v_cost = 0.125, .tokens = 700, .unstable = true};
  choice.scores = {{"k", choice.keys.Name(), 2, 0.92, 64, 1.0 / 7, 0.2}};
  return choice;
}

void ExpectSide(const CacheSide& read, const CacheSide& wrote) {
  EXPECT_EQ(read.num_rotations, wrote.num_rotations);
  EXPECT_EQ(read.dim, wrote.dim);
  EXPECT_EQ(read.rotation, wrote.rotation);
  EXPECT_EQ(read.query_rotation, wrote.query_rotation);
  EXPECT_EQ(read.pair_scale, wrote.pair_scale);
  EXPECT_EQ(read.mean, wrote.mean);
  EXPECT_EQ(read.feedback, wrote.feedback);
}

TEST(LayerFile, EveryKindOfChoiceComesBackExactly) {
  std::vector<SampleRecipe> recipes = SampleRecipes();
  recipes[1].k_clip = {0.9, 0.94};
  recipes[2].quant_group_size = 4;
  recipes[2].keys.feedback = true;
  for (const SampleRecipe& recipe : recipes) {
    const fs::path path = TestScratch("layer-choice") / "layer.safetensors";
    LayerResult wrote = Sample();
    wrote.automatic = EveryNumberSet(wrote.moments, recipe);
    wrote.automatic.k_options[0].check_curve = {0.3};
    wrote.automatic.k_options[0].windows_curve = {{0.1, 1.0 / 3, 0.7}};
    AutoArm arm{{.k_bits = 3, .v_bits = 4, .k_clip = 0.9, .v_clip = 0.88}, {}};
    arm.arm.name = "auto";
    arm.arm.rows = 9;
    arm.arm.kl_max = 0.5;
    wrote.auto_arms = {arm, arm};
    wrote.auto_arms[1].point.k_clip = 0;
    // Two choices for other consumers: one has the same sides, the other has different ones.
    wrote.other_choices = {wrote.automatic, SampleChoice(wrote.moments, recipes[0])};
    wrote.other_choices[0].k_check = 0.7;
    WriteLayerFile(path, wrote);
    const LayerResult read = ReadLayerFile(path);
    SCOPED_TRACE(recipe.keys.Name());
    ASSERT_TRUE(read.automatic.made);
    EXPECT_EQ(read.automatic.keys, recipe.keys);
    EXPECT_EQ(read.automatic.values, recipe.values);
    EXPECT_EQ(ChoiceToJson(read.automatic), ChoiceToJson(wrote.automatic));
    ExpectSide(read.automatic.k, wrote.automatic.k);
    ExpectSide(read.automatic.v, wrote.automatic.v);
    ASSERT_EQ(read.other_choices.size(), 2U);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(ChoiceToJson(read.other_choices[i]), ChoiceToJson(wrote.other_choices[i]));
      EXPECT_EQ(read.other_choices[i].k, wrote.other_choices[i].k);
      EXPECT_EQ(read.other_choices[i].v, wrote.other_choices[i].v);
    }
    ASSERT_EQ(read.auto_arms.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(read.auto_arms[i].point, wrote.auto_arms[i].point);
      EXPECT_EQ(read.auto_arms[i].arm.rows, 9);
      EXPECT_EQ(read.auto_arms[i].arm.kl_max, 0.5);
    }
    const fs::path again = path.parent_path() / "again.safetensors";
    WriteLayerFile(again, read);
    EXPECT_EQ(ReadText(path), ReadText(again));
  }
}

std::string Message(const fs::path& path) {
  return ErrorOf<InputError>([&] { ReadLayerFile(path); });
}

TEST(LayerFile, ATruncatedOneIsAnErrorThatNamesIt) {
  const fs::path path = TestScratch("layer-short") / "layer.safetensors";
  LayerResult wrote = Sample();
  wrote.automatic = SampleChoice(wrote.moments, SampleRecipes().back());
  WriteLayerFile(path, wrote);
  const std::string whole = ReadText(path);
  for (const size_t size : {size_t{0}, size_t{100}, whole.size() / 2, whole.size() - 1}) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    EXPECT_TRUE(Says(Message(path), "layer.safetensors")) << size;
  }
}

TEST(LayerFile, ASideThatDoesNotFitTheLayerIsAnError) {
  const fs::path path = TestScratch("layer-side") / "layer.safetensors";
  const auto message = [&](const std::function<void(AutoChoice&)>& edit) {
    LayerResult wrote = Sample();
    wrote.automatic = SampleChoice(wrote.moments, SampleRecipes().back());
    edit(wrote.automatic);
    WriteLayerFile(path, wrote);
    return Message(path);
  };
  EXPECT_EQ(message([](AutoChoice&) {}), "");
  for (const auto& edit :
       {+[](AutoChoice& c) { c.k.rotation.pop_back(); },
        +[](AutoChoice& c) { c.k.query_rotation.pop_back(); },
        +[](AutoChoice& c) { c.k.mean.pop_back(); }, +[](AutoChoice& c) { c.k.pair_scale = {1}; },
        +[](AutoChoice& c) { c.k.num_rotations = 3; }, +[](AutoChoice& c) { c.k.dim = 4; }}) {
    EXPECT_TRUE(Says(message(edit), "choice.0.k does not match 2 KV heads of dimension 8"));
  }
  EXPECT_TRUE(Says(message([](AutoChoice& c) { c.v.rotation.clear(); }), "choice.0.v"));
}

TEST(MomentsFile, RoundTripAndIds) {
  const fs::path path = TestScratch("moments") / "moments.safetensors";
  MomentsWriter writer(path);
  writer.Add(SampleMoments(11, 30, 1));
  LayerMoments merged = SampleMoments(3, 30, 1);
  merged.Merge(SampleMoments(3, 30, 2));
  writer.Add(merged);
  writer.Commit();
  const MomentsReader reader(path);
  EXPECT_EQ(reader.Read(11).diagonal, SampleMoments(11, 30, 1).diagonal);
  EXPECT_TRUE(reader.Read(3).diagonal.empty());
  EXPECT_EQ(reader.Read(3).tokens, 60);
  EXPECT_THROW(reader.Read(4), InputError);
}

TEST(MomentsFile, ALayerFileIsNotOne) {
  const fs::path path = TestScratch("moments") / "layer.safetensors";
  WriteLayerFile(path, Sample());
  EXPECT_THROW(MomentsReader reader(path), InputError);
}

}  // namespace
}  // namespace oscar
