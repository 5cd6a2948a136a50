// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs copies of real models whose v_proj and o_proj contain the rotation of values. A copy's
// logits equal the model's up to the last bits of float32, or up to the rounding of weights in
// narrower types. Models that cannot hold a rotation are refused by name.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "calib/job/layer_file.h"
#include "calib/run/calibrate.h"
#include "capture/checkpoint/stored_values.h"
#include "capture/checkpoint/weight_storage.h"
#include "capture/model/run/layer_loop.h"
#include "capture/model/run/output_head.h"
#include "export/artifact/artifact_writer.h"
#include "export/fold/fold_checkpoint.h"
#include "export/fold/fold_plan.h"
#include "linalg/base/error.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/export/validate/tiny_artifact.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::vector<int32_t> SpreadIds(const ModelSpec& spec, int64_t count, int64_t step) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>((i + 1) * step % spec.vocab_size));
  return ids;
}

class IgnoreAttention : public LayerObserver {
 public:
  void OnAttention(const AttentionView&) override {}
};

at::Tensor LogitsOf(const TinyModel& model) {
  const std::vector<int32_t> ids = SpreadIds(model.spec, 64, 7919);
  LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat);
  std::vector<at::Tensor> streams = {loop.Embed({ids})};
  IgnoreAttention observer;
  loop.Run(streams, {std::ssize(ids)}, 0, observer, [](size_t) { return true; });
  return OutputHead(model.checkpoint, model.spec, {at::kCPU, at::kFloat}).Logits(streams[0]);
}

// Calibrates OSCAR's rotations on the model itself. The artifact contains no automatic choices.
Artifact ArtifactOf(const TinyModel& model, const fs::path& scratch) {
  std::vector<std::vector<int32_t>> texts;
  for (const int64_t step : {7919, 104729}) texts.push_back(SpreadIds(model.spec, 256, step));
  CalibrationInput input;
  input.source = std::make_shared<ModelSource>(model.checkpoint, model.spec, texts, at::kCPU,
                                               at::kFloat, CalibrationLoopOptions());
  input.options.clip.mode = ClipMode::kFixed;
  input.options.held_out = 0;
  input.options.min_tokens = 1;
  JobDirectory job(scratch / "job", {}, false);
  RunCalibration(input, job, {});
  WriteArtifact(scratch / "artifact", SampleInfo(), {model.spec.layers.size(), [&](size_t index) {
                                                       return ReadLayerFile(job.LayerPath(index));
                                                     }});
  return Artifact::Open(scratch / "artifact");
}

// Writes a copy of the model with all weights in float32. Returns its path.
fs::path InFloat32(const fs::path& model, const fs::path& to) {
  const Checkpoint checkpoint = Checkpoint::Open(model);
  fs::create_directories(to);
  fs::copy_file(model / "config.json", to / "config.json");
  std::vector<SafetensorsWriter::Declaration> declarations;
  for (const std::string& name : checkpoint.names())
    declarations.push_back({name, DType::kF32, checkpoint.info(name).shape});
  SafetensorsWriter writer(to / "model.safetensors", declarations, {});
  for (const auto& declaration : declarations) {
    const TensorView view = checkpoint.tensor(declaration.name);
    std::vector<float> values;
    for (size_t at = 0; at < view.data.size(); at += static_cast<size_t>(DTypeBytes(view.dtype)))
      values.push_back(LoadFloat(view.dtype, view.data.data() + at));
    writer.Write(declaration.name, std::as_bytes(std::span(values)));
  }
  writer.Commit();
  return to;
}

struct Difference {
  double largest = 0;  // max |x - y| / max |y|
  double middle = 0;   // median over tokens of |x - y| / |y|
};

Difference AbsorbAndCompare(const fs::path& directory, const Artifact& artifact,
                            const fs::path& to) {
  const TinyModel model(directory);
  const FoldPlan plan =
      PlanFold(artifact, model.checkpoint, model.spec, {.values = FoldValues::kRotation});
  EXPECT_EQ(plan.record.at("values"), "rotation");
  WriteFoldedCheckpoint(model.checkpoint, model.spec, plan.layers, plan.record, to);
  const TinyModel copy(to);
  // The copy has other weights, but must compute the same logits.
  const std::string v = model.spec.layers.front().attention.v.weight;
  const auto bytes = [&](const TinyModel& of) {
    const TensorView view = of.checkpoint.tensor(v);
    return std::vector(view.data.begin(), view.data.end());
  };
  EXPECT_NE(bytes(copy), bytes(model));
  const at::Tensor expected = LogitsOf(model), found = LogitsOf(copy);
  const at::Tensor apart = (found - expected).norm(2, -1) / expected.norm(2, -1);
  return {((found - expected).abs().max() / expected.abs().max()).item<double>(),
          apart.median().item<double>()};
}

void ExpectAbsorbed(const fs::path& directory, const std::string& name) {
  SCOPED_TRACE(name);
  const fs::path scratch = TestScratch("absorb_" + name);
  const Artifact artifact = ArtifactOf(TinyModel(directory), scratch);
  const fs::path exact = InFloat32(directory, scratch / "float32");
  const Difference float32 = AbsorbAndCompare(exact, artifact, scratch / "float32_copy");
  EXPECT_LE(float32.largest, 1e-5);
  const Difference stored = AbsorbAndCompare(directory, artifact, scratch / "copy");
  EXPECT_LE(stored.middle, 0.015);
  std::cout << fmt::format("{:16} float32 {:.1e}, as stored {:.1e}\n", name, float32.largest,
                           stored.middle);
}

TEST(AbsorbedModel, ComputesWhatTheModelComputes) {
  ExpectAbsorbed(TestData("arch/llama"), "llama");
  ExpectAbsorbed(TestData("arch/qwen2-swa"), "qwen2-swa");    // biases, windows
  ExpectAbsorbed(TestData("families/gpt_neox"), "gpt_neox");  // q, k and v fused, head by head
}

// Covers attention sinks, soft caps, windows, biases, routed experts, QK-norms of every kind, and
// fused q, k and v. None of them is between v_proj and o_proj.
TEST(AbsorbedModel, OfManyFamiliesComputesWhatTheModelComputes) {
  for (const char* name : {"qwen3", "qwen2", "llama-bias-tied", "glm4", "glm4_moe", "gemma2",
                           "gemma3_text", "mistral-swa", "phi3", "smollm3", "olmo2", "granite",
                           "qwen3_moe", "minimax_m2", "gpt_oss"}) {
    OSCAR_PACK_OR_SKIP(pack, std::string("arch/") + name);
    ExpectAbsorbed(pack, name);
  }
}

TEST(AbsorbedModel, IsRefusedWhereSomethingStandsBetweenTheProjections) {
  const std::pair<const char*, const char*> refused[] = {
      {"deepseek_v3", "are computed from a latent"},
      {"qwen3_next", "a gate multiplies its output channel by channel"},
      {"qwen3_5_text", "a gate multiplies its output channel by channel"},
      {"gemma4_text", "its values are normalized"},
      {"gemma4_text-ple", "its values are normalized"},
  };
  for (const auto& [name, why] : refused) {
    OSCAR_PACK_OR_SKIP(pack, std::string("arch/") + name);
    const TinyModel model(pack);
    const std::string error = ErrorOf<InputError>([&] {
      PlanFold(Artifact::Open(TinyArtifact()), model.checkpoint, model.spec,
               {.values = FoldValues::kRotation});
    });
    EXPECT_TRUE(Says(error, why));
    EXPECT_TRUE(Says(error, "layer "));
  }
}

// Codes that share a scale cannot hold rotated weights. Attention weights that a quantized
// checkpoint left unquantized can.
TEST(AbsorbedModel, OfAQuantizedCheckpointIsExactOrRefused) {
  for (const char* name : {"fp8-block", "ct-float-channel", "modelopt-fp8", "gptq-4bit-sym",
                           "awq-gemm", "ct-pack-w4a16", "ct-nvfp4"}) {
    OSCAR_PACK_OR_SKIP(pack, std::string("formats/") + name);
    const TinyModel model(pack);
    const fs::path scratch = TestScratch(std::string("absorb_quantized_") + name);
    const Artifact artifact = ArtifactOf(model, scratch);
    const std::string error = ErrorOf<InputError>([&] {
      const FoldPlan plan =
          PlanFold(artifact, model.checkpoint, model.spec, {.values = FoldValues::kRotation});
      WriteFoldedCheckpoint(model.checkpoint, model.spec, plan.layers, plan.record,
                            scratch / "copy");
    });
    EXPECT_FALSE(fs::exists(scratch / "copy"));
    for (const char* part : {"is stored as", "_proj.weight", "quantize the result"})
      EXPECT_TRUE(Says(error, part));
  }
  for (const char* name : {"ct-mixed-mlp", "mxfp4-gpt-oss", "fp32", "fp16", "bf16-sharded"}) {
    OSCAR_PACK_OR_SKIP(pack, std::string("formats/") + name);
    const fs::path scratch = TestScratch(std::string("absorb_plain_") + name);
    const Difference apart =
        AbsorbAndCompare(pack, ArtifactOf(TinyModel(pack), scratch), scratch / "copy");
    std::cout << fmt::format("{:16} {:.1e}\n", name, apart.middle);
    EXPECT_LE(apart.middle, std::string(name) == "fp32" ? 1e-5 : 0.015) << name;
  }
}

TEST(AbsorbedModel, IsPublishedOnlyWhenTheCheckIsContent) {
  const TinyModel model(TestData("arch/llama"));
  const fs::path scratch = TestScratch("absorb_check");
  const std::vector<LayerFold> nothing(model.spec.layers.size());
  EXPECT_THROW(
      WriteFoldedCheckpoint(model.checkpoint, model.spec, nothing, Json::object(), scratch / "copy",
                            [](const fs::path& copy) {
                              EXPECT_NO_THROW(TinyModel{copy});
                              throw NumericalError("not the same");
                            }),
      NumericalError);
  EXPECT_TRUE(fs::is_empty(scratch));
}

}  // namespace
}  // namespace oscar
