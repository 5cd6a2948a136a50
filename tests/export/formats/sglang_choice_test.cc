// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that the exported choice is what SGLang's loaders accept: each field on every layer or on
// none.
#include "export/formats/sglang_choice.h"

#include <gtest/gtest.h>

#include <iterator>
#include <span>

#include "capture/files/digest.h"
#include "export/formats/mla_folder.h"
#include "export/formats/rotation_pair.h"
#include "export/formats/sglang_pair.h"
#include "linalg/base/error.h"
#include "tests/export/formats/float_tensor.h"
#include "tests/export/formats/torch_python.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

constexpr int64_t kChoiceDim = 2, kChoiceHeads = 2;

const FloatTensorPtr kTurn = MakeTensor({2, 2}, {0.6F, 0.8F, -0.8F, 0.6F});
const FloatTensorPtr kFlip = MakeTensor({2, 2}, {0, 1, 1, 0});

SglangChoiceLayer Shared(int64_t id) {
  return {
      .layer_id = id, .k = kTurn, .q = {}, .k_mean = {}, .v = kFlip, .num_kv_heads = kChoiceHeads};
}
// Returns a layer that scales keys by 2 and 4 (one factor per head), divides queries by the same
// factors, and has key means.
SglangChoiceLayer Scaled(int64_t id) {
  return {.layer_id = id,
          .k = MakeTensor({2, 2, 2}, {2, 0, 0, 2, 4, 0, 0, 4}),
          .q = MakeTensor({2, 2, 2}, {.5F, 0, 0, .5F, .25F, 0, 0, .25F}),
          .k_mean = MakeTensor({2, 2}, {1, 2, 3, 4}),
          .v = kFlip,
          .num_kv_heads = kChoiceHeads};
}

SglangChoice Choice(std::vector<SglangChoiceLayer> layers) {
  SglangChoice choice;
  choice.layers = std::move(layers);
  choice.key_transform = "balanced";
  choice.calibration = {{"artifact_sha256", "abc"}};
  choice.serving.k_clip_ratio = 0.9;
  return choice;
}

RotationPair Read(const std::filesystem::path& directory) {
  const auto files = FindRotationPair(directory);
  EXPECT_TRUE(files.has_value());
  return OpenRotationPair(files->first, files->second);
}

TEST(SglangChoice, Version3FillsInWhatOnlySomeLayersHave) {
  const auto out = TestScratch("sglang-choice-v3") / "export";
  WriteSglangChoice(out, Choice({Shared(3), Scaled(7)}), SglangVersion::kV3);
  EXPECT_TRUE(std::filesystem::exists(out / "k_rotation_oscar2_auto.pt"));
  const RotationPair pair = Read(out);
  EXPECT_EQ(pair.k.kind, RotationKind::kV3);
  EXPECT_EQ(pair.k.objective, "oscar2_auto");
  EXPECT_EQ(pair.v.objective, "oscar2_v_auto");
  EXPECT_EQ(pair.k.source_grouping, "head");
  EXPECT_EQ(pair.v.source_grouping, "layer");
  EXPECT_EQ(pair.k.transform,
            Json({{"key", "balanced"}, {"centered", true}, {"orthogonal", false}}));
  EXPECT_EQ(pair.v.transform, Json({{"key", "oscar"}, {"centered", false}, {"orthogonal", true}}));
  const RotationLayer& shared = pair.k.layers.at(0);
  const std::vector<float> twice = {0.6F, 0.8F, -0.8F, 0.6F, 0.6F, 0.8F, -0.8F, 0.6F};
  EXPECT_EQ(shared.layer_id, 3);
  EXPECT_EQ(shared.rotation->values, twice);
  EXPECT_EQ(shared.q_rotation->values, twice);  // orthogonal, so its own inverse transposed
  EXPECT_EQ(shared.k_mean->values, (std::vector<float>{0, 0, 0, 0}));
  const RotationLayer& scaled = pair.k.layers.at(1);
  EXPECT_EQ(scaled.q_rotation->values, Scaled(7).q->values);
  EXPECT_EQ(scaled.k_mean->values, Scaled(7).k_mean->values);
  EXPECT_EQ(scaled.k_mean->shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(pair.v.layers.at(1).rotation->values, kFlip->values);
  EXPECT_EQ(pair.v.layers.at(1).o_rotation, nullptr);
}

TEST(SglangChoice, TorchLoadsVersion3) {
  const auto out = TestScratch("sglang-choice-torch") / "export";
  WriteSglangChoice(out, Choice({Shared(3), Scaled(7)}), SglangVersion::kV3);
  const std::string k = (out / "k_rotation_oscar2_auto.pt").string();
  OSCAR_TORCH_OR_SKIP(output, k + " " + (out / "v_rotation_oscar2_auto.pt").string());
  const Json seen = Json::parse(output);
  EXPECT_EQ(seen.at(k).at("objective"), "oscar2_auto");
  std::vector<float> bytes = Scaled(7).k->values;
  for (const FloatTensorPtr& more : {Scaled(7).q, Scaled(7).k_mean})
    bytes.insert(bytes.end(), more->values.begin(), more->values.end());
  EXPECT_EQ(seen.at(k).at("rotations").at("7"), Sha256Hex(std::as_bytes(std::span(bytes))));
}

TEST(SglangChoice, Version3HasNoFieldThatNoLayerNeeds) {
  const auto out = TestScratch("sglang-choice-plain") / "export";
  WriteSglangChoice(out, Choice({Shared(0)}), SglangVersion::kV3);
  const RotationPair pair = Read(out);
  EXPECT_EQ(pair.k.layers.at(0).q_rotation, nullptr);
  EXPECT_EQ(pair.k.layers.at(0).k_mean, nullptr);
  EXPECT_EQ(pair.k.source_grouping, "layer");
  EXPECT_EQ(pair.k.transform.at("orthogonal"), true);
  EXPECT_EQ(pair.k.transform.at("centered"), false);
}

TEST(SglangChoice, Version1IsOneRotationPerLayerAndRefusesTheRest) {
  const auto scratch = TestScratch("sglang-choice-v1");
  WriteSglangChoice(scratch / "v1", Choice({Shared(0), Shared(1)}), SglangVersion::kV1);
  const RotationPair pair = Read(scratch / "v1");
  EXPECT_EQ(pair.k.kind, RotationKind::kV1);
  EXPECT_EQ(pair.k.objective, "qqt_auto");
  EXPECT_EQ(pair.k.layers.at(1).rotation->values, kTurn->values);
  EXPECT_EQ(pair.k.layers.at(1).rotation->shape, (std::vector<int64_t>{2, 2}));
  SglangChoiceLayer mean = Shared(1), query = Shared(1), heads = Shared(1);
  mean.k_mean = Scaled(1).k_mean;
  query.q = kTurn;
  heads.v = MakeTensor({2, 2, 2}, {0, 1, 1, 0, 0, 1, 1, 0});
  for (const SglangChoiceLayer& layer : {mean, query, heads}) {
    EXPECT_THROW(WriteSglangChoice(scratch / "no", Choice({Shared(0), layer}), SglangVersion::kV1),
                 InputError);
    EXPECT_FALSE(std::filesystem::exists(scratch / "no"));
  }
  EXPECT_THROW(WriteSglangChoice(scratch / "no", Choice({}), SglangVersion::kV3), InputError);
}

// A pair that reads back differently is an error. Here the field that is read was never written.
TEST(SglangPair, WhatIsReadBackIsCompared) {
  const auto file = [](const char* name, FloatTensorPtr RotationLayer::*read) {
    return SglangFile{.name = name,
                      .objective = "hadamard",
                      .source_grouping = "layer",
                      .value_target = {},
                      .transform = {},
                      .calibration = {},
                      .layers = {{0, {{"rotation", read, kTurn}}}}};
  };
  const auto scratch = TestScratch("sglang-read-back");
  const SglangFile k = file("k_rotation.pt", &RotationLayer::rotation),
                   v = file("v_rotation.pt", &RotationLayer::rotation);
  EXPECT_NO_THROW(WriteSglangPair(scratch, k, v));
  EXPECT_THROW(WriteSglangPair(scratch, k, file("v_rotation.pt", &RotationLayer::mean)),
               ResourceError);
}

TEST(MlaFolder, HasAFieldOnEveryLayerOrOnNone) {
  const auto scratch = TestScratch("mla-folder");
  const FloatTensorPtr wide = MakeTensor({2, 2}, {2, 0, 0, .5F}),
                       narrow = MakeTensor({2, 2}, {.5F, 0, 0, 2});
  const auto written = [&](const char* name, std::vector<MlaFolderLayer> layers) {
    MlaFolder folder;
    folder.layers = std::move(layers);
    WriteMlaFolder(scratch / name, folder);
    return OpenMlaFolder(scratch / name);
  };
  const RotationFile bare = written("bare", {{0, kTurn}, {1, kFlip}});
  EXPECT_EQ(bare.layers.at(1).rotation->values, kFlip->values);
  EXPECT_EQ(bare.layers.at(1).q_rotation, nullptr);
  EXPECT_TRUE(bare.transform.is_null());
  const RotationFile joint = written("joint", {{0, kTurn}, {1, wide, narrow}});
  EXPECT_EQ(joint.layers.at(0).q_rotation->values, kTurn->values);
  EXPECT_EQ(joint.layers.at(1).q_rotation->values, narrow->values);
  EXPECT_EQ(joint.layers.at(1).mean, nullptr);
  EXPECT_EQ(joint.transform.at("orthogonal"), false);
  const RotationFile mean = written("mean", {{0, kTurn}, {1, kFlip, {}, MakeTensor({2}, {3, 4})}});
  EXPECT_EQ(mean.layers.at(0).mean->values, (std::vector<float>{0, 0}));
  EXPECT_EQ(mean.layers.at(1).mean->values, (std::vector<float>{3, 4}));
  EXPECT_EQ(mean.layers.at(1).q_rotation, nullptr);
}

TEST(SglangChoice, NothingIsPublishedWhereQueriesDoNotUndoKeys) {
  const auto scratch = TestScratch("sglang-choice-bad");
  SglangChoiceLayer layer = Scaled(0);
  layer.q = MakeTensor({2, 2, 2}, {.5F, 0, 0, .5F, .25F, 0, 0, .26F});
  EXPECT_THROW(WriteSglangChoice(scratch / "export", Choice({layer}), SglangVersion::kV3),
               NumericalError);
  EXPECT_TRUE(std::filesystem::is_empty(scratch));
}

TEST(SglangChoice, TwoExportsHaveTheSameBytes) {
  const auto scratch = TestScratch("sglang-choice-same");
  for (const char* name : {"a", "b"})
    WriteSglangChoice(scratch / name, Choice({Shared(0), Scaled(1)}), SglangVersion::kV3);
  for (const char* file : {"k_rotation_oscar2_auto.pt", "v_rotation_oscar2_auto.pt"})
    EXPECT_EQ(DigestFile(scratch / "a" / file), DigestFile(scratch / "b" / file));
}

}  // namespace
}  // namespace oscar
