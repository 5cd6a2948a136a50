// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests where a fold's scales come from, with sample artifacts and random weights, and which files
// a folded checkpoint has. fold_model_test.cc tests real models.
#include "export/fold/fold_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "calib/fit/transform_fit.h"
#include "capture/checkpoint/safetensors.h"
#include "export/fold/fold_checkpoint.h"
#include "export/fold/stored_weight.h"
#include "linalg/base/error.h"
#include "tests/calib/moments/sample_moments.h"
#include "tests/export/artifact/chosen_artifact.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/linalg/random_values.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr int64_t kFoldHidden = 6;

// Returns a model with the geometry of SampleMoments and layers of these ids, in this order.
ModelSpec Model(const std::vector<int>& layer_ids, bool qk_norm) {
  ModelSpec spec;
  for (const int id : layer_ids) {
    LayerSpec layer;
    layer.layer_id = id;
    AttentionSpec& a = layer.attention;
    a.num_q_heads = 4;
    a.num_kv_heads = 2;
    a.head_dim = 8;
    a.v_head_dim = 4;
    a.qk_norm = qk_norm;
    a.rope.rotary_dim = 4;
    a.k_norm = {"k_norm" + std::to_string(id), 8};
    a.q_norm = {"q_norm" + std::to_string(id), 8};
    a.o = {"o" + std::to_string(id), "", 16, kFoldHidden};
    a.v = {"v" + std::to_string(id), "", kFoldHidden, 8};
    spec.layers.push_back(layer);
  }
  return spec;
}

// Writes random weights of v_proj and o_proj, and norm weights of 1. Returns the folder.
fs::path WriteWeights(const fs::path& directory, const ModelSpec& spec) {
  fs::create_directories(directory);
  std::vector<SafetensorsWriter::Declaration> declarations;
  for (const LayerSpec& layer : spec.layers) {
    const AttentionSpec& a = layer.attention;
    declarations.push_back({a.o.weight, DType::kF32, {kFoldHidden, 16}});
    declarations.push_back({a.v.weight, DType::kF32, {8, kFoldHidden}});
    declarations.push_back({a.k_norm.weight, DType::kBF16, {8}});
    declarations.push_back({a.q_norm.weight, DType::kBF16, {8}});
  }
  SafetensorsWriter writer(directory / "model.safetensors", declarations, {});
  for (const auto& [name, dtype, shape] : declarations) {
    WeightMatrix weight = WeightMatrix::Ones(shape[0], 1);
    if (shape.size() == 2) weight = RandomNormal(shape[0], shape[1], 5);
    writer.Write(name, StoredWeight(weight, dtype, name));
  }
  writer.Commit();
  return directory;
}

// Writes an artifact whose choice has pair scales in layer 0 and none in layer 1.
fs::path ChosenArtifact(const std::string& name, bool per_head) {
  const fs::path path = TestScratch("fold_plan_" + name) / "artifact";
  const KeyRecipe scaled{.kind = KeyTransformKind::kPairScaled, .per_head = per_head};
  WriteChosenArtifact(path, {{.keys = scaled, .values = {}}, {.keys = {}, .values = {}}}, {});
  return path;
}

TEST(FoldPlan, TakesTheChosenScalesOfEachLayer) {
  const fs::path path = ChosenArtifact("chosen", true);
  const Artifact artifact = Artifact::Open(path);
  const std::vector<double> stored = artifact.ReadLayer(0).automatic->k.pair_scale;
  ASSERT_EQ(stored.size(), 16U);
  const Checkpoint checkpoint =
      Checkpoint::Open(WriteWeights(path.parent_path() / "model", Model({1, 0}, false)));
  for (const FoldScales scales : {FoldScales::kAuto, FoldScales::kChosen}) {
    const FoldPlan plan = PlanFold(artifact, checkpoint, Model({1, 0}, false), {.scales = scales});
    ASSERT_EQ(plan.layers.size(), 2U);
    EXPECT_TRUE(plan.layers[0].key_scales.empty());  // layer 1, which is the model's first layer
    ASSERT_EQ(plan.layers[1].key_scales.size(), 2U);
    for (int64_t i = 0; i < 16; ++i)
      EXPECT_EQ(plan.layers[1].key_scales[static_cast<size_t>(i / 8)][i % 8],
                stored[static_cast<size_t>(i)]);
    EXPECT_TRUE(plan.layers[1].values.empty());
    EXPECT_EQ(plan.record.at("scales"), "chosen");
    EXPECT_EQ(plan.record.at("artifact"), artifact.identity());
    EXPECT_EQ(plan.record.at("layers").at(1).at("layer_id"), 0);
    EXPECT_EQ(plan.record.at("layers").at(1).at("key_scales").at(1).at(3), stored[11]);
    EXPECT_TRUE(plan.record.at("layers").at(1).at("values_condition").is_null());
  }
}

// All heads share the weights of a QK-norm, so their chosen scales must be equal. Scales that
// differ are refused.
TEST(FoldPlan, ChosenScalesOfANormAreOneSet) {
  ModelSpec spec = Model({0}, true);
  spec.layers[0].attention.rope.rotary_dim = 8;  // as in SampleChoice
  for (const bool same : {true, false}) {
    const fs::path scratch = TestScratch(same ? "fold_plan_norm" : "fold_plan_norms");
    const KeyRecipe scaled{.kind = KeyTransformKind::kPairScaled};
    WriteChosenArtifact(scratch / "artifact", {{.keys = scaled, .values = {}}}, {}, [&](int id) {
      LayerMoments moments = SampleMoments(id, 60, 4);
      for (auto* sums : {&moments.query, &moments.key, &moments.key_sum}) {
        const auto middle = sums->begin() + std::ssize(*sums) / 2;
        if (same) std::copy(sums->begin(), middle, middle);
      }
      return moments;
    });
    const Artifact artifact = Artifact::Open(scratch / "artifact");
    const Checkpoint checkpoint = Checkpoint::Open(WriteWeights(scratch / "model", spec));
    const FoldPlan plan = PlanFold(artifact, checkpoint, spec, {});
    EXPECT_EQ(plan.layers[0].key_scales.size(), same ? 1U : 2U);
    const auto write = [&] {
      WriteFoldedCheckpoint(checkpoint, spec, plan.layers, plan.record, scratch / "folded");
    };
    if (same) {
      EXPECT_NO_THROW(write());
    } else {
      EXPECT_THROW(write(), UsageError);
    }
    EXPECT_EQ(fs::exists(scratch / "folded"), same);
  }
}

TEST(FoldPlan, MakesScalesOfUncentredMomentsWhereNoneWereChosen) {
  const fs::path scratch = TestScratch("fold_plan_exact");
  WriteSampleArtifact(scratch / "artifact");
  const Artifact artifact = Artifact::Open(scratch / "artifact");
  const LayerMoments moments = SampleLayer(1, 1).moments;  // layer 11
  for (const bool qk_norm : {false, true}) {
    const ModelSpec spec = Model({3, 11}, qk_norm);
    const Checkpoint checkpoint =
        Checkpoint::Open(WriteWeights(scratch / (qk_norm ? "normalized" : "plain"), spec));
    for (const bool power_of_two : {false, true}) {
      const FoldPlan plan =
          PlanFold(artifact, checkpoint, spec,
                   {.scales = power_of_two ? FoldScales::kAuto : FoldScales::kExact});
      EXPECT_EQ(plan.record.at("scales"), power_of_two ? "power_of_two" : "exact");
      const KeyRecipe recipe = {.kind = KeyTransformKind::kPairScaled,
                                .power_of_two = power_of_two};
      const RopePairs pairs = {.rotary_dim = 4};
      std::vector<Vector> expected = {SharedPairScales(moments, recipe, pairs)};
      if (!qk_norm)
        expected = {HeadPairScales(moments, 0, recipe, pairs),
                    HeadPairScales(moments, 1, recipe, pairs)};
      EXPECT_EQ(plan.layers[1].key_scales, expected);
      EXPECT_EQ(plan.layers[0].key_scales == expected, power_of_two);  // powers of two are all 1
    }
    EXPECT_THROW(PlanFold(artifact, checkpoint, spec, {.scales = FoldScales::kChosen}), InputError);
  }
}

TEST(FoldPlan, BalancesValuesAgainstTheHeadsOwnReaders) {
  const fs::path scratch = TestScratch("fold_plan_values");
  WriteSampleArtifact(scratch / "artifact");
  const ModelSpec spec = Model({3, 11}, true);
  const Checkpoint checkpoint = Checkpoint::Open(WriteWeights(scratch / "model", spec));
  const FoldPlan plan = PlanFold(Artifact::Open(scratch / "artifact"), checkpoint, spec,
                                 {.values = FoldValues::kBalanced, .value_epsilon = 0.02});
  const LayerMoments moments = SampleLayer(1, 1).moments;
  const Matrix projection = ReadWeight(checkpoint.tensor("o11"), "o11");
  double condition = 0;
  ASSERT_EQ(plan.layers[1].values.size(), 2U);
  for (const int64_t head : {0, 1}) {
    const KeyTransform expected = FitValueTransform(
        moments, head, OutputMetric(projection, moments, head), 0.02, Composition::kPlain);
    EXPECT_EQ(plan.layers[1].values[static_cast<size_t>(head)].x, expected.x) << head;
    condition = std::max(condition, expected.condition);
  }
  EXPECT_EQ(plan.record.at("layers").at(1).at("values_condition"), condition);
}

TEST(FoldPlan, RefusesWhatCannotBeFolded) {
  const fs::path scratch = TestScratch("fold_plan_refused");
  WriteSampleArtifact(scratch / "artifact");
  const ModelSpec spec = Model({3, 11}, true);
  const Checkpoint checkpoint = Checkpoint::Open(WriteWeights(scratch / "model", spec));
  ModelSpec other = spec;
  other.layers[1].attention.v_head_dim = 8;
  EXPECT_THROW(PlanFold(Artifact::Open(scratch / "artifact"), checkpoint, other, {}), InputError);
  // A tensor of two layers cannot hold the scales of both, and a missing tensor cannot hold any.
  const std::vector<LayerFold> layers(2, LayerFold{{Vector::Constant(8, 2)}, {}});
  ModelSpec shared = spec, missing = spec;
  shared.layers[1].attention.k_norm.weight = "k_norm3";
  missing.layers[1].attention.k_norm.weight = "k_norm12";
  for (const ModelSpec& wrong : {shared, missing}) {
    EXPECT_THROW(
        WriteFoldedCheckpoint(checkpoint, wrong, layers, Json::object(), scratch / "folded"),
        InputError);
    EXPECT_FALSE(fs::exists(scratch / "folded"));
  }
}

TEST(FoldedCheckpoint, HasTheSameTensorsAndTheSideFiles) {
  const fs::path scratch = TestScratch("folded_files");
  const ModelSpec spec = Model({3}, true);
  WriteWeights(scratch / "model", spec);
  const auto write = [&](const char* name, const char* text) {
    WriteFileAtomically(scratch / "model" / name, text);
  };
  for (const char* side :
       {"chat_template.jinja", "tokenizer.model", "merges.txt", "vocab.tiktoken"})
    write(side, side);
  write("config.json", "{}");
  write(kFoldFile, "of an earlier fold");
  write("pytorch_model.bin", "weights that nobody folded");
  fs::create_directories(scratch / "model" / "original.json");
  const Checkpoint checkpoint = Checkpoint::Open(scratch / "model");
  WriteFoldedCheckpoint(checkpoint, spec, {{{Vector::Constant(8, 2)}, {}}}, {{"made", "here"}},
                        scratch / "folded");
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(scratch / "folded"))
    files.push_back(entry.path().filename());
  std::ranges::sort(files);
  std::vector<std::string> expected = {
      "chat_template.jinja", "config.json",    "merges.txt", "model.safetensors",
      "tokenizer.model",     "vocab.tiktoken", kFoldFile};
  std::ranges::sort(expected);
  EXPECT_EQ(files, expected);
  EXPECT_EQ(ReadText(scratch / "folded" / "merges.txt"), "merges.txt");
  EXPECT_EQ(ReadJsonFile(scratch / "folded" / kFoldFile), (Json{{"made", "here"}}));
  const Checkpoint folded = Checkpoint::Open(scratch / "folded");
  ASSERT_EQ(folded.names(), checkpoint.names());
  for (const std::string& name : folded.names()) {
    const TensorView before = checkpoint.tensor(name), after = folded.tensor(name);
    EXPECT_EQ(after.dtype, before.dtype) << name;
    EXPECT_EQ(after.shape, before.shape) << name;
    const double scale = name == "k_norm3" ? 2 : name == "q_norm3" ? 0.5 : 1;
    EXPECT_EQ(ReadWeight(after, name), WeightMatrix(scale * ReadWeight(before, name))) << name;
  }
}

}  // namespace
}  // namespace oscar
