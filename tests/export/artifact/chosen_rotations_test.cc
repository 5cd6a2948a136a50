// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Longer than 400 lines because a choice is written, read, exported and refused in one place.
//
// Tests that an artifact's automatic choice survives writing, reading and export, and is refused
// for a runtime that cannot carry it.
#include "export/artifact/chosen_rotations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "calib/choose/choice_points.h"
#include "calib/consumers.h"
#include "calib/job/refit_layer.h"
#include "capture/files/atomic_file.h"
#include "export/artifact/artifact_format.h"
#include "export/artifact/artifact_writer.h"
#include "export/artifact/choice_demands.h"
#include "export/artifact/model_card.h"
#include "export/formats/rotation_pair.h"
#include "linalg/base/error.h"
#include "tests/calib/moments/sample_moments.h"
#include "tests/export/artifact/chosen_artifact.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::vector<double> AsStored(std::vector<double> values) {
  for (double& value : values) value = static_cast<double>(static_cast<float>(value));
  return values;
}
std::vector<float> Floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

LayerMoments MomentsOf(int id) { return SampleMoments(id, 60, 4 + static_cast<unsigned>(id)); }

void ExpectSide(const CacheSide& read, const CacheSide& wrote) {
  EXPECT_EQ(read.num_rotations, wrote.num_rotations);
  EXPECT_EQ(read.dim, wrote.dim);
  EXPECT_EQ(read.rotation, AsStored(wrote.rotation));
  EXPECT_EQ(read.query_rotation, AsStored(wrote.query_rotation));
  EXPECT_EQ(read.pair_scale, AsStored(wrote.pair_scale));
  EXPECT_EQ(read.mean, AsStored(wrote.mean));
}

TEST(ChosenArtifact, ReadsBackEveryKindOfChoice) {
  const fs::path path = TestScratch("chosen") / "a";
  std::vector<SampleRecipe> recipes = SampleRecipes();
  recipes[1].k_clip = {0.9, 0.94};  // one ratio per head
  recipes[2].v_clip = {0.88};       // not the ratio of the first layer
  recipes[3].quant_group_size = 4;
  recipes[5].quant_group_size = 2;
  // The budget gives more than 2 bits to some keys and some values.
  WriteChosenArtifact(path, recipes, {.bits = StoredBits(recipes, 3.5)});
  const Artifact artifact = Artifact::Open(path);
  ASSERT_TRUE(artifact.has_choices());
  int k_more = 0, v_more = 0;
  for (size_t i = 0; i < recipes.size(); ++i) {
    const AutoChoice wrote = SampleChoice(MomentsOf(static_cast<int>(i)), recipes[i]);
    const StoredChoice read = artifact.ReadLayer(static_cast<int>(i)).automatic.value();
    ASSERT_GT(wrote.k.num_rotations, 0) << wrote.keys.Name();
    ExpectSide(read.k, wrote.k);
    ExpectSide(read.v, wrote.v);
    EXPECT_EQ(read.k_codes.clip, AsStored(recipes[i].k_clip));
    EXPECT_EQ(read.v_codes.clip, AsStored(recipes[i].v_clip));
    EXPECT_EQ(read.k_codes.quant_group_size, recipes[i].quant_group_size);
    const Json report = artifact.report().at("layers").at(i).at("auto");
    EXPECT_EQ(ChoiceFromJson(report, "report").keys, recipes[i].keys);
    EXPECT_EQ(ChoiceFromJson(report, "report").values, recipes[i].values);
    EXPECT_EQ(report.at("k_bits"), read.k_codes.bits.at(0));
    EXPECT_EQ(report.at("v_bits"), read.v_codes.bits.at(0));
    k_more += read.k_codes.bits[0] - 2;
    v_more += read.v_codes.bits[0] - 2;
  }
  EXPECT_GT(k_more, 0);
  EXPECT_GT(v_more, 0);
}

TEST(ChosenArtifact, BitsOfHeadsComeBack) {
  const fs::path path = TestScratch("chosen-heads") / "a";
  const auto load = [](size_t i) {
    LayerResult layer = SampleLayer(i, 1);
    layer.automatic = SampleChoice(layer.moments, SampleRecipes()[1]);
    if (i == 0) return layer;
    for (auto* options : {&layer.automatic.k_options, &layer.automatic.v_options}) {
      SideOption mixed = options->front();
      mixed.bits = 3;
      mixed.head_bits = {4, 2};
      mixed.clip = {0.99, 0.92};
      mixed.head_score = mixed.head_check = {0.01, 0.02};
      mixed.score = 1e-9;  // so low that the budget is spent on this option
      if (!mixed.in_windows.empty()) mixed.in_windows.assign(mixed.in_windows.size(), 1e-9);
      *options = {options->front(), mixed};
    }
    return layer;
  };
  ArtifactInfo info = SampleInfo();
  info.automatic.bits = 20;  // short heads need many bits of metadata
  WriteArtifact(path, info, {2, load});
  const Artifact artifact = Artifact::Open(path);
  const std::vector<int> ids = artifact.layer_ids();
  EXPECT_EQ(artifact.ReadLayer(ids[0]).automatic->k_codes.bits, std::vector<int>{4});
  const StoredChoice heads = artifact.ReadLayer(ids[1]).automatic.value();
  EXPECT_EQ(heads.k_codes.bits, (std::vector<int>{4, 2}));
  EXPECT_EQ(heads.v_codes.bits, (std::vector<int>{4, 2}));
  EXPECT_EQ(heads.k_codes.clip, AsStored({0.99, 0.92}));
  const AutoChoice report =
      ChoiceFromJson(artifact.report().at("layers").at(1).at("auto"), "report");
  EXPECT_EQ(report.k_option().Bits(), (std::vector<int>{4, 2}));
  EXPECT_EQ(report.k_option().head_score, (std::vector<double>{0.01, 0.02}));
  EXPECT_EQ(report.k_bits, 3);
  // A runtime that takes only 2-bit codes cannot carry this choice.
  const std::vector<std::string> lost =
      DemandsOf(artifact, kHeadlineChoice).NotCarriedBy(RulesOf(Consumer::kSglangOct));
  EXPECT_TRUE(std::ranges::any_of(lost, [](const std::string& text) {
    return text.find("numbers of bits other than 2") != text.npos;
  }));
}

TEST(ChosenArtifact, WindowsOfTheChoiceAreWhatServersAreTold) {
  const fs::path path = TestScratch("chosen-windows") / "a";
  WriteChosenArtifact(path, SampleRecipes(),
                      {.bits = StoredBits(SampleRecipes(), 4.6), .windows = true});
  const Json serving = Artifact::Open(path).manifest().at("serving");
  EXPECT_EQ(serving.at("recent_tokens"), 1024);
  EXPECT_EQ(serving.at("sink_tokens"), 128);
  EXPECT_EQ(serving.at("auto").at("recent_tokens"), 1024);
}

// Writes a sample artifact and applies `edit` to its manifest.
void WriteEdited(const fs::path& path, const std::function<void(Json&)>& edit) {
  WriteChosenArtifact(path, SampleRecipes(), {});
  Json manifest = Artifact::Open(path).manifest();
  edit(manifest);
  WriteFileAtomically(path / kManifestFile, CanonicalJson(manifest));
}

TEST(ChosenArtifact, ABrokenChoiceIsRefusedWithItsName) {
  const fs::path scratch = TestScratch("chosen-broken");
  const struct {
    std::function<void(Json&)> edit;
    const char* said;
  } cases[] = {
      {[](Json& m) { m["auto"]["layers"][1].erase("k_bits"); }, "k_bits"},
      {[](Json& m) { m["auto"]["layers"][1]["k_bits"] = 9; }, "k_bits is 9, expected 1 to 8"},
      {[](Json& m) {
         m["auto"]["layers"][1]["k_bits"] = {2, 3, 4};
       },
       "k_bits has 3 numbers, expected one for each of 2 KV heads"},
      {[](Json& m) {
         m["auto"]["layers"][1]["v_bits"] = {2, 2.5};
       },
       "v_bits contains 2.5"},
      {[](Json& m) {
         m["auto"]["layers"][1]["v_bits"] = {2, 0};
       },
       "v_bits is 0"},
      {[](Json& m) { m["auto"]["layers"][1]["quant_group_size"] = 3; }, "groups of 3 values"},
      {[](Json& m) { m["auto"]["layers"][1]["layer_id"] = 77; }, "has no layer 1"},
      {[](Json& m) { m["auto"].erase("layers"); }, "layers"},
  };
  int count = 0;
  for (const auto& broken : cases) {
    const fs::path path = scratch / std::to_string(count++);
    WriteEdited(path, broken.edit);
    const std::string message = ErrorOf<InputError>([&] { Artifact::Open(path).ReadLayer(1); });
    EXPECT_TRUE(Says(message, broken.said));
  }
}

TEST(ChosenArtifact, MatricesThatDoNotBelongTogetherAreRefused) {
  const fs::path scratch = TestScratch("chosen-matrices");
  const auto write = [&](const std::string& name, const std::function<void(AutoChoice&)>& edit) {
    WriteArtifact(scratch / name, SampleInfo(), {1, [&](size_t) {
                                                   LayerResult layer = SampleLayer(0, 1);
                                                   layer.automatic = SampleChoice(
                                                       layer.moments, SampleRecipes().back());
                                                   edit(layer.automatic);
                                                   return layer;
                                                 }});
    return Artifact::Open(scratch / name);
  };
  EXPECT_NO_THROW(write("good", [](AutoChoice&) {}).ReadLayer(3));
  EXPECT_THROW(write("query", [](AutoChoice& c) { c.k.query_rotation[3] += 0.05; }).ReadLayer(3),
               NumericalError);
  EXPECT_THROW(write("value", [](AutoChoice& c) { c.v.rotation[3] += 0.05; }).ReadLayer(3),
               NumericalError);
  EXPECT_THROW(write("scale", [](AutoChoice& c) { c.k.pair_scale.assign(16, 0); }).ReadLayer(3),
               NumericalError);
}

// Makes an arm whose KL encodes its point: 100 k_bits + 10 v_bits + k_clip + v_clip / 10.
AutoArm ArmAt(const ChoicePoint& point) {
  AutoArm arm{point, {}};
  arm.arm.name = "auto";
  arm.arm.kl_mean = 100 * point.k_bits + 10 * point.v_bits + point.k_clip + point.v_clip / 10;
  return arm;
}

LayerResult MeasuredLayer(int id, const AutoOptions& options, std::vector<double> curve) {
  const LayerMoments moments = MomentsOf(id);
  LayerResult layer = RefitLayer(moments, {}, {});
  layer.automatic = SampleChoice(moments, SampleRecipes()[0]);
  layer.automatic.k_output_error = 0;  // more bits for values gain nothing
  const auto best = std::ranges::min_element(curve) - curve.begin();
  for (auto* side : {&layer.automatic.k_options, &layer.automatic.v_options}) {
    for (SideOption& option : *side) {
      option.ratios = {0.88, 0.90, 0.92};
      option.curve = option.check_curve = curve;
      for (double& score : option.curve) score /= option.bits;
      option.SetRatio(option.ratios[static_cast<size_t>(best)]);
      for (double& kl : option.in_windows) kl = option.score;
    }
  }
  for (const ChoicePoint& point : PointsOf(options, layer.automatic))
    layer.auto_arms.push_back(ArmAt(point));
  layer.arms = {layer.auto_arms.front().arm};
  layer.auto_arms.erase(layer.auto_arms.begin());
  return layer;
}

std::vector<double> ReportedKl(const fs::path& path, const AutoOptions& options) {
  ArtifactInfo info = SampleInfo();
  info.automatic = options;
  const Json report =
      WriteArtifact(path, info, {2, [&](size_t i) {
                                   return MeasuredLayer(static_cast<int>(i), options,
                                                        i == 0 ? std::vector<double>{1, 2, 9}
                                                               : std::vector<double>{30, 6, 5});
                                 }});
  std::vector<double> kl;
  for (const Json& layer : report.at("layers"))
    kl.push_back(layer.at("arms").at("auto").at("kl_mean"));
  EXPECT_EQ(report.at("summary").at("arms").at("auto").at("kl_mean"), (kl[0] + kl[1]) / 2);
  return kl;
}

TEST(ChosenArtifact, TheReportedArmIsOfWhatAllLayersShare) {
  const fs::path scratch = TestScratch("chosen-arm");
  const auto kl = [&](const char* name, const AutoOptions& options) {
    return ReportedKl(scratch / name, options);
  };
  // Each layer uses its own best ratio (0.88 and 0.92), so the point has no shared ratio.
  EXPECT_EQ(kl("any", {}), (std::vector<double>{220, 220}));
  // The curves sum to 31, 8 and 14 at the ratios 0.88, 0.90 and 0.92.
  const double shared = 220 + 0.90 + 0.090;
  EXPECT_EQ(kl("sglang", {.consumer = Consumer::kSglang}), (std::vector<double>{shared, shared}));
  EXPECT_EQ(kl("llamacpp", {.consumer = Consumer::kLlamacpp}),
            (std::vector<double>{shared, shared}));
  // The extra bit goes to the keys of the second layer, whose errors are larger.
  const std::vector<SampleRecipe> two(2, SampleRecipes()[0]);
  EXPECT_EQ(kl("bits", {.bits = StoredBits(two, 2 + 1.0 / 3)}), (std::vector<double>{220, 320}));
}

// An artifact holds a choice for every consumer and stores equal choices once. Each consumer's
// export contains that consumer's choice.
TEST(ChosenArtifact, EveryConsumerReadsItsOwnChoice) {
  const fs::path scratch = TestScratch("chosen-consumers");
  std::vector<SampleRecipe> recipes = SampleRecipes();
  for (SampleRecipe& recipe : recipes) recipe.v_clip = recipe.k_clip;  // one ratio for both sides
  const AutoOptions headline{.enabled = true, .consumer = Consumer::kSglangOct, .fold = false};
  const std::vector<AutoOptions> others = OtherChoices(headline, false);
  ArtifactInfo info = SampleInfo();
  info.automatic = headline;
  const auto recipe_of = [&](const AutoOptions& options) {
    return options.fold ? recipes[2] : recipes[0];  // folded scales, or one plain rotation
  };
  WriteArtifact(scratch / "a", info,
                {2, [&](size_t i) {
                   const LayerMoments moments = MomentsOf(static_cast<int>(i));
                   LayerResult layer = RefitLayer(moments, {}, {});
                   layer.automatic = SampleChoice(moments, recipes[5]);
                   for (const AutoOptions& other : others) {
                     layer.other_choices.push_back(SampleChoice(moments, recipe_of(other)));
                   }
                   return layer;
                 }});
  const Artifact artifact = Artifact::Open(scratch / "a");
  // The plain and the folded choice are stored once each, for all their consumers.
  EXPECT_EQ(artifact.choice_names(), (std::vector<std::string>{"auto", "any", "sglang+fold"}));
  EXPECT_EQ(artifact.ChoiceFor("sglang-oct", false), "auto");
  EXPECT_EQ(artifact.ChoiceFor("sglang", false), "any");
  EXPECT_EQ(artifact.ChoiceFor("vllm", false), "any");
  EXPECT_EQ(artifact.ChoiceFor("sglang", true), "sglang+fold");
  for (const int id : artifact.layer_ids()) {
    const AutoChoice plain = SampleChoice(MomentsOf(id), recipes[0]),
                     folded = SampleChoice(MomentsOf(id), recipes[2]);
    ExpectSide(artifact.ReadChoice(id, "any").k, plain.k);
    ExpectSide(artifact.ReadChoice(id, "sglang+fold").k, folded.k);
    ExpectSide(artifact.ReadLayer(id).automatic->k, SampleChoice(MomentsOf(id), recipes[5]).k);
  }
  for (const auto& [consumer, version] : {std::pair(Consumer::kSglang, SglangVersion::kV1),
                                          std::pair(Consumer::kSglangOct, SglangVersion::kV3)}) {
    const fs::path out = scratch / std::string(RulesOf(consumer).name);
    WriteSglangChoice(out, ChosenForRuntime(artifact, consumer, false), version);
    const auto files = FindRotationPair(out).value();
    const RotationPair pair = OpenRotationPair(files.first, files.second);
    const std::string name = artifact.ChoiceFor(RulesOf(consumer).name, false);
    EXPECT_EQ(pair.k.layers.at(1).rotation->values,
              Floats(artifact.ReadChoice(1, name).k.rotation));
    EXPECT_EQ(pair.k.calibration.at("choice"), name);
  }
  // A choice with a separate matrix for queries needs no folded checkpoint.
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] { (void)artifact.ChoiceFor("sglang-oct", true); }),
                   "folds nothing"));
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] { (void)artifact.ChoiceFor("trt", false); }), "trt"));
}

TEST(ChosenRotations, Version3CarriesTheArtifactsTensors) {
  const fs::path scratch = TestScratch("chosen-v3");
  WriteChosenArtifact(scratch / "a", SampleRecipes(), {.consumer = Consumer::kSglangOct});
  const Artifact artifact = Artifact::Open(scratch / "a");
  const SglangChoice exported = ChosenForRuntime(artifact, Consumer::kSglangOct, /*folded=*/true);
  EXPECT_EQ(exported.serving.k_clip_ratio, 0.92);
  EXPECT_EQ(exported.serving.v_clip_ratio, 0.9);
  const std::string card = ModelCard(artifact.report());  // OSCAR's own ratios differ
  EXPECT_TRUE(Says(card, "clip ratio K 0.92, V 0.90; for OSCAR's own rotations K"));
  EXPECT_NE(artifact.report().at("serving").at("k_clip_ratio"), 0.92);
  EXPECT_EQ(exported.serving.quant_group_size, 8);
  EXPECT_EQ(exported.key_transform, "mixed");
  EXPECT_TRUE(exported.folded);
  WriteSglangChoice(scratch / "v3", exported, SglangVersion::kV3);
  const auto files = FindRotationPair(scratch / "v3").value();
  const RotationPair pair = OpenRotationPair(files.first, files.second);
  EXPECT_EQ(pair.k.calibration.at("artifact_sha256"), artifact.identity());
  EXPECT_EQ(pair.k.calibration.at("folded_checkpoint"), true);
  const StoredChoice centred = artifact.ReadLayer(1).automatic.value(),
                     balanced = artifact.ReadLayer(5).automatic.value();
  EXPECT_EQ(pair.k.layers.at(1).rotation->values, Floats(centred.k.rotation));
  EXPECT_EQ(pair.k.layers.at(1).q_rotation->values, Floats(centred.k.rotation));
  EXPECT_EQ(pair.k.layers.at(1).k_mean->values, Floats(centred.k.mean));
  EXPECT_EQ(pair.k.layers.at(5).q_rotation->values, Floats(balanced.k.query_rotation));
  EXPECT_EQ(pair.k.layers.at(5).k_mean->values, Floats(balanced.k.mean));
  EXPECT_EQ(pair.v.layers.at(5).rotation->values, Floats(balanced.v.rotation));
}

TEST(ChosenRotations, Version1CarriesOneRotationPerLayer) {
  const fs::path scratch = TestScratch("chosen-v1");
  const std::vector<SampleRecipe> recipes = {SampleRecipes()[0], SampleRecipes()[2]};
  WriteChosenArtifact(scratch / "a", recipes, {.consumer = Consumer::kSglang});
  const Artifact artifact = Artifact::Open(scratch / "a");
  const SglangChoice exported = ChosenForRuntime(artifact, Consumer::kSglang, /*folded=*/true);
  WriteSglangChoice(scratch / "v1", exported, SglangVersion::kV1);
  const auto files = FindRotationPair(scratch / "v1").value();
  const RotationPair pair = OpenRotationPair(files.first, files.second);
  EXPECT_EQ(pair.k.layers.at(1).rotation->values,
            Floats(artifact.ReadLayer(1).automatic->k.rotation));
  EXPECT_TRUE(exported.folded);
}

// Tests choices that break the rules of their own runtime. Only an edited artifact can contain one.
TEST(ChosenRotations, WhatAFileCannotHoldIsRefused) {
  const fs::path scratch = TestScratch("chosen-refused");
  const SampleRecipe plain = SampleRecipes()[0];
  SampleRecipe heads = plain, mean = plain;
  heads.values.per_head = true;
  mean.keys.centred = true;
  const struct {
    SampleRecipe recipe;
    const char* said;
  } cases[] = {{heads, "a rotation per KV head (layer 1)"},
               {mean, "key means (layer 1)"},
               {SampleRecipes()[5], "a separate matrix for queries (layer 1)"}};
  int count = 0;
  for (const auto& refused : cases) {
    const fs::path path = scratch / std::to_string(count++);
    WriteChosenArtifact(path, {plain, refused.recipe},
                        {.consumer = Consumer::kSglang, .fold = false});
    const Artifact artifact = Artifact::Open(path);
    const std::string message =
        ErrorOf<InputError>([&] { ChosenForRuntime(artifact, Consumer::kSglang, false); });
    EXPECT_TRUE(Says(message, refused.said));
  }
}

TEST(ChosenRotations, ARuntimeWithoutAChoiceIsToldWhatThereIs) {
  const fs::path scratch = TestScratch("chosen-none");
  WriteSampleArtifact(scratch / "none");
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] {
                     ChosenForRuntime(Artifact::Open(scratch / "none"), Consumer::kSglangOct,
                                      false);
                   }),
                   "contains no automatic choice"));
  WriteChosenArtifact(scratch / "plain", {SampleRecipes()[0]},
                      {.consumer = Consumer::kSglang, .fold = false});
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] {
                     ChosenForRuntime(Artifact::Open(scratch / "plain"), Consumer::kSglang, true);
                   }),
                   "folds nothing"));
}

TEST(ChoiceDemands, OneRatioOfAllHeadsIsOneRatio) {
  StoredChoice choice;
  choice.k_codes.clip = {0.9, 0.9};
  choice.v_codes.clip = {0.88, 0.88};
  ChoiceDemands demands;
  demands.Add(0, choice);
  demands.Add(1, choice);
  EXPECT_TRUE(demands.NotCarriedBy(RulesOf(Consumer::kSglang)).empty());
  EXPECT_EQ(demands.NotCarriedBy(RulesOf(Consumer::kLlamacpp)),
            (std::vector<std::string>{"clip ratios that differ between keys and values"}));
  choice.k_codes.clip = choice.v_codes.clip;
  choice.v_codes.clip = {0.9, 0.9};
  demands.Add(2, choice);  // the same two ratios with sides swapped
  EXPECT_EQ(demands.NotCarriedBy(RulesOf(Consumer::kOnnx)), std::vector<std::string>{});
  EXPECT_EQ(demands.NotCarriedBy(RulesOf(Consumer::kSglang)),
            (std::vector<std::string>{"a clip ratio per layer"}));
}

}  // namespace
}  // namespace oscar
