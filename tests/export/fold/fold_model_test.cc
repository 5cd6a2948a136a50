// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs folded copies of real models. The logits do not change, and OSCAR fitted to the copy gains
// what the scales gain.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "capture/checkpoint/safetensors.h"
#include "capture/model/run/layer_loop.h"
#include "capture/model/run/output_head.h"
#include "export/fold/fold_checkpoint.h"
#include "export/fold/fold_plan.h"
#include "linalg/base/error.h"
#include "tests/export/validate/outlier_twin.h"
#include "tests/export/validate/tiny_validation.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

class IgnoreAll : public LayerObserver {
 public:
  void OnAttention(const AttentionView&) override {}
};

at::Tensor Logits(const TinyModel& model, const std::vector<int32_t>& ids) {
  LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat);
  std::vector<at::Tensor> streams = {loop.Embed({ids})};
  IgnoreAll observer;
  loop.Run(streams, {std::ssize(ids)}, 0, observer, [](size_t) { return true; });
  return OutputHead(model.checkpoint, model.spec, {at::kCPU, at::kFloat}).Logits(streams[0]);
}

std::vector<int32_t> SomeIds(const ModelSpec& spec, int64_t count) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>(i * 7919 % spec.vocab_size));
  return ids;
}

fs::path Folded(const TinyModel& model, const fs::path& artifact, const std::string& name,
                const FoldOptions& options) {
  const fs::path to = TestScratch("fold_" + name) / "model";
  const FoldPlan plan = PlanFold(Artifact::Open(artifact), model.checkpoint, model.spec, options);
  WriteFoldedCheckpoint(model.checkpoint, model.spec, plan.layers, plan.record, to);
  return to;
}

double Apart(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).square().sum() / b.square().sum()).sqrt().item<double>();
}

TEST(FoldedModel, PowersOfTwoLeaveTheLogitsBitForBit) {
  const TinyModel model;
  const TinyModel folded(
      Folded(model, TinyArtifact(), "pow2", {.scales = FoldScales::kPowerOfTwo}));
  const std::vector<int32_t> ids = SomeIds(model.spec, 96);
  EXPECT_TRUE(at::equal(Logits(folded, ids), Logits(model, ids)));
}

TEST(FoldedModel, OtherScalesAndValuesStayWithinTheRoundingOfWeights) {
  const TinyModel model;
  const std::vector<int32_t> ids = SomeIds(model.spec, 96);
  const at::Tensor logits = Logits(model, ids);
  const TinyModel keys(Folded(model, TinyArtifact(), "keys", {.scales = FoldScales::kExact}));
  EXPECT_GT(Apart(Logits(keys, ids), logits), 0);
  EXPECT_LT(Apart(Logits(keys, ids), logits), 0.01);
  const TinyModel values(
      Folded(model, TinyArtifact(), "values", {.values = FoldValues::kBalanced}));
  EXPECT_LT(Apart(Logits(values, ids), logits), 0.02);
}

TEST(FoldedModel, HoldsEverythingThatTheModelHeld) {
  const TinyModel model;
  const fs::path to = Folded(model, TinyArtifact(), "whole", {});
  for (const char* file : {"config.json", "tokenizer.json", "tokenizer_config.json"})
    EXPECT_EQ(ReadText(to / file), ReadText(model.directory / file)) << file;
  EXPECT_FALSE(fs::exists(to / "golden.safetensors"));
  const Json record = ReadJsonFile((to / kFoldFile).string());
  EXPECT_EQ(record.at("artifact"), Artifact::Open(TinyArtifact()).identity());
  EXPECT_EQ(record.at("layers").size(), model.spec.layers.size());
  const TinyModel folded(to);
  EXPECT_EQ(folded.checkpoint.names(), model.checkpoint.names());
  EXPECT_NO_THROW(CheckTensors(folded.spec, folded.checkpoint));
  // The folder exists now, and is not overwritten.
  EXPECT_THROW(WriteFoldedCheckpoint(model.checkpoint, model.spec,
                                     std::vector<LayerFold>(model.spec.layers.size()), {}, to),
               InputError);
}

TEST(FoldedModel, ShardsKeepTheirTensors) {
  const TinyModel model;
  const fs::path sharded = TestScratch("fold_shards") / "model";
  fs::create_directories(sharded);
  Json map = Json::object();
  const std::vector<std::string> names = model.checkpoint.names();
  for (const size_t shard : {0, 1}) {
    std::vector<SafetensorsWriter::Declaration> declarations;
    const std::string file = shard == 0 ? "a.safetensors" : "b.safetensors";
    for (size_t i = shard; i < names.size(); i += 2) {
      const TensorView view = model.checkpoint.tensor(names[i]);
      declarations.push_back({names[i], view.dtype, view.shape});
      map[names[i]] = file;
    }
    SafetensorsWriter writer(sharded / file, declarations, {{"format", "pt"}});
    for (const auto& tensor : declarations)
      writer.Write(tensor.name, model.checkpoint.tensor(tensor.name).data);
    writer.Commit();
  }
  WriteFileAtomically(sharded / "model.safetensors.index.json",
                      CanonicalJson({{"weight_map", map}}));
  fs::copy_file(model.directory / "config.json", sharded / "config.json");

  const TinyModel shards(sharded);
  const TinyModel folded(
      Folded(shards, TinyArtifact(), "sharded", {.scales = FoldScales::kPowerOfTwo}));
  EXPECT_EQ(folded.checkpoint.files(), shards.checkpoint.files());
  EXPECT_EQ(SafetensorsFile::Open(folded.directory / "a.safetensors").metadata().at("format"),
            "pt");
  const std::vector<int32_t> ids = SomeIds(model.spec, 32);
  EXPECT_TRUE(at::equal(Logits(folded, ids), Logits(model, ids)));
}

TEST(FoldedModel, ProjectionsAndBiases) {
  for (const char* family : {"arch/llama", "arch/qwen2-swa"}) {
    const TinyModel model(TestData(std::string(family) + "/config.json").parent_path());
    std::vector<LayerFold> layers;
    for (const LayerSpec& layer : model.spec.layers) {
      const AttentionSpec& a = layer.attention;
      ASSERT_FALSE(a.qk_norm);
      const RopePairs pairs{a.rope.rotary_dim, false};
      LayerFold fold;
      for (int64_t head = 0; head < a.num_kv_heads; ++head) {
        Vector d(a.head_dim);
        for (int64_t i = 0; i < a.head_dim; ++i)
          d[i] = std::exp2((std::min(i, pairs.Partner(i)) + head) % 5 - 2);
        fold.key_scales.push_back(d);
      }
      layers.push_back(std::move(fold));
    }
    const fs::path to = TestScratch("fold_projections") / "model";
    WriteFoldedCheckpoint(model.checkpoint, model.spec, layers, Json::object(), to);
    const std::vector<int32_t> ids = SomeIds(model.spec, 48);
    EXPECT_TRUE(at::equal(Logits(TinyModel(to), ids), Logits(model, ids))) << family;
  }
}

// The twin's outlier channels increase OSCAR's KL. Scales folded into the twin remove them, so
// plain rotations of the folded twin are as good as those of the plain model.
TEST(FoldedModel, PlainRotationsOfTheFoldedTwinKeepTheGain) {
  const TinyModel model;
  const fs::path scratch = TestScratch("fold_twin");
  WriteOutlierTwin(model.directory, scratch / "twin", 7);
  const TinyModel twin(scratch / "twin");
  const fs::path twin_artifact = TinyArtifactOf(twin, "fold_twin_artifact");
  const std::string oscar = "oscar_per_head+clip+windows";
  ValidationOptions options = QuickOptions({oscar});
  options.local_only = true;
  const auto kl = [&](const fs::path& artifact, const TinyModel& of) {
    return Kl(ValidateTiny(artifact, options, at::kCPU, 768, of), oscar);
  };
  const double plain = kl(TinyArtifact(), model), spoiled = kl(twin_artifact, twin);
  const TinyModel folded(Folded(twin, twin_artifact, "twin_fold", {}));
  const double kept = kl(TinyArtifactOf(folded, "fold_folded_artifact"), folded);
  EXPECT_GT(spoiled, 5 * plain);
  EXPECT_LT(kept, 1.05 * plain);
}

}  // namespace
}  // namespace oscar
