// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the validation of latent attention with dense attention over expanded heads. The test
// quantizes latents, expands them through kv_b and attends in float64, at the model's own queries
// and through the whole model. Absorbed and expanded forms agree only if output errors are measured
// after W_UV.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "calib/job/layer_file.h"
#include "calib/run/calibrate.h"
#include "calib/run/provenance.h"
#include "capture/model/run/output_head.h"
#include "export/artifact/artifact_writer.h"
#include "export/artifact/chosen_rotations.h"
#include "export/formats/rotation_file.h"
#include "linalg/base/error.h"
#include "linalg/rotation.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/export/formats/float_tensor.h"
#include "tests/export/validate/tiny_validation.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr int64_t kLatentRank = 16, kLatentSink = 4, kLatentRecent = 12;

std::vector<std::vector<int32_t>> RandomLatentTexts(unsigned seed, size_t count, size_t length) {
  std::minstd_rand random(seed);
  std::vector<std::vector<int32_t>> texts(count, std::vector<int32_t>(length));
  for (auto& text : texts) {
    for (int32_t& id : text) id = static_cast<int32_t>(random() % 64);
  }
  return texts;
}

// Returns an artifact with an automatic choice.
fs::path ArtifactOfLatents(const TinyModel& model, const std::string& name, size_t length,
                           Consumer consumer = Consumer::kAny) {
  const fs::path scratch = TestScratch(name);
  CalibrationInput input;
  input.source =
      std::make_shared<ModelSource>(model.checkpoint, model.spec, RandomLatentTexts(3, 6, length),
                                    at::kCPU, at::kFloat, CalibrationLoopOptions());
  input.options.min_tokens = 1;
  input.options.sink_tokens = kLatentSink;
  input.options.recent_tokens = kLatentRecent;
  input.options.automatic.enabled = true;
  input.options.automatic.consumer = consumer;
  const HeldOutSplit split = CheckCalibration(input);
  JobDirectory job(scratch / "job", {}, false);
  RunCalibration(input, job, {});
  ArtifactInfo info = SampleInfo();
  info.calibration = DescribeOptions(input.options, split, input.source->layers());
  info.automatic = input.options.automatic;
  WriteArtifact(scratch / "artifact", info, {model.spec.layers.size(), [&](size_t index) {
                                               return ReadLayerFile(job.LayerPath(index));
                                             }});
  return scratch / "artifact";
}

const fs::path& DeepSeekArtifact() {
  static const fs::path path =
      ArtifactOfLatents(TinyModel(TestData("families/deepseek_v3")), "latent_validation", 90);
  return path;
}

ValidationOptions OptionsForLatents(std::vector<std::string> arms) {
  ValidationOptions options = QuickOptions(std::move(arms));
  options.rows_per_sequence = 0;
  options.round_to_bf16 = false;
  options.methods.windows = {kLatentSink, kLatentRecent};
  options.score_from = 1;
  return options;
}

Json ValidateLatents(const TinyModel& model, const fs::path& artifact,
                     const std::vector<std::vector<int32_t>>& texts,
                     const ValidationOptions& options,
                     const std::vector<std::vector<int32_t>>& calibration = {}) {
  return ValidateModel(model.checkpoint, model.spec, at::kCPU, at::kFloat,
                       {.texts = texts, .needles = {}, .calibration = calibration},
                       Artifact::Open(artifact), options, {});
}

// Returns latents [T, rank] after a round trip through 2 bits in the Hadamard basis, with one scale
// per row.
at::Tensor InTwoBits(const at::Tensor& latents) {
  const Matrix hadamard = HadamardRotation(kLatentRank).matrix();
  const at::Tensor h =
      at::from_blob(const_cast<double*>(hadamard.data()), {kLatentRank, kLatentRank}, at::kDouble)
          .t()
          .clone();
  const at::Tensor y = latents.to(at::kDouble).matmul(h);
  const at::Tensor low = y.amin(-1, true);
  const at::Tensor scale = y.amax(-1, true).sub(low).clamp_min(1e-8).div(3);
  const at::Tensor zero = low.neg().div(scale);
  return y.div(scale).add(zero).add(0.5).trunc().clamp(0, 3).sub(zero).mul(scale).matmul(h.t());
}

// Dense attention over expanded heads in float64. Tensors are [heads, T, ...].
struct ExpandedHeads {
  explicit ExpandedHeads(const AttentionView& view)
      : scale(view.layer.attention.scale),
        q(Heads(view.q)),
        k_pe(view.k_pe.to(at::kDouble)),
        kv_b(view.kv_b.to(at::kDouble)),
        nope(view.layer.attention.latent->nope_dim) {}

  static at::Tensor Heads(const at::Tensor& x) { return x.to(at::kDouble).transpose(0, 1); }
  at::Tensor Logits(const at::Tensor& latents) const {
    const at::Tensor keys = at::matmul(latents, kv_b.narrow(1, 0, nope).transpose(1, 2));
    const at::Tensor position = k_pe.unsqueeze(0).expand({keys.size(0), -1, -1});
    return q.matmul(at::cat({keys, position}, 2).transpose(1, 2)).mul(scale);
  }
  at::Tensor Values(const at::Tensor& latents) const {
    return at::matmul(latents, kv_b.narrow(1, nope, kv_b.size(1) - nope).transpose(1, 2));
  }

  double scale;
  at::Tensor q, k_pe, kv_b;
  int64_t nope;
};

struct LatentRows {
  at::Tensor log_p, out;  // [heads, T, T], [heads, T, v_head_dim]
};

// Attends to stored latents, except that each query reads the latents in its windows exactly.
LatentRows AttendLatents(const ExpandedHeads& heads, const at::Tensor& exact,
                         const at::Tensor& stored, bool windows) {
  const int64_t tokens = exact.size(0);
  const at::Tensor i = at::arange(tokens).unsqueeze(1), j = at::arange(tokens).unsqueeze(0);
  at::Tensor is_exact = j.lt(kLatentSink).logical_or(j.ge(i + 1 - kLatentRecent));
  if (!windows) is_exact = at::zeros_like(is_exact);
  const at::Tensor log_p = at::where(is_exact, heads.Logits(exact), heads.Logits(stored))
                               .masked_fill(j.gt(i), -INFINITY)
                               .log_softmax(-1);
  const at::Tensor p = log_p.exp();
  return {log_p, p.masked_fill(is_exact.logical_not(), 0)
                     .matmul(heads.Values(exact))
                     .add(p.masked_fill(is_exact, 0).matmul(heads.Values(stored)))};
}

// Sums of one arm over all layers, for the rows in the second half of a text.
struct LatentSums {
  double kl = 0, error = 0, energy = 0, rows = 0;
};

// Runs the model with expanded heads. Stream 1 is the arm, which reads quantized latents.
struct LatentOracle : LayerObserver {
  explicit LatentOracle(bool with_windows) : windows(with_windows) {}
  bool Attend(const AttentionView& view) override {
    if (view.stream == 0) return false;
    const at::Tensor c = view.c_kv.to(at::kDouble);
    view.attn_out.copy_(
        AttendLatents(ExpandedHeads(view), c, InTwoBits(c), windows).out.transpose(0, 1));
    return true;
  }
  void OnAttention(const AttentionView& view) override {
    if (view.stream != 0) return;
    const ExpandedHeads heads(view);
    const at::Tensor c = view.c_kv.to(at::kDouble);
    const LatentRows own = oscar::AttendLatents(heads, c, c, false);
    const LatentRows arm = oscar::AttendLatents(heads, c, InTwoBits(c), windows);
    const int64_t tokens = c.size(0), from = tokens / 2;
    const at::Tensor kl = own.log_p.exp().mul(own.log_p - arm.log_p).nan_to_num(0).sum(-1);
    const auto late = [&](const at::Tensor& x) { return x.slice(1, from); };
    sums.kl += late(kl).sum().item<double>();
    sums.rows += static_cast<double>(late(kl).numel());
    sums.error += late(arm.out - own.out).square().sum().item<double>();
    sums.energy += late(own.out).square().sum().item<double>();
  }
  bool windows;
  LatentSums sums;
};

TEST(LatentValidation, EqualsDenseAttentionOfExpandedHeads) {
  const TinyModel model(TestData("families/deepseek_v3"));
  const auto texts = RandomLatentTexts(17, 2, 64);
  const Json report = ValidateLatents(model, DeepSeekArtifact(), texts,
                                      OptionsForLatents({"hadamard", "hadamard+windows"}));
  for (const bool windows : {false, true}) {
    const std::string arm = windows ? "hadamard+windows" : "hadamard";
    LoopOptions options;
    options.token_ids = &texts;
    const LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat, options);
    std::vector<at::Tensor> streams = {loop.Embed(texts)};
    streams.push_back(streams[0].clone());
    LatentOracle oracle(windows);
    loop.Run(streams, {64, 64}, 0, oracle, [](size_t) { return true; });

    const Json& local = ArmOf(report, arm).at("local");
    EXPECT_EQ(local.at("rows"), 64);
    EXPECT_NEAR(Kl(report, arm) / (oracle.sums.kl / oracle.sums.rows), 1, 2e-4) << arm;
    EXPECT_NEAR(local.at("output_rel_error").get<double>() /
                    std::sqrt(oracle.sums.error / oracle.sums.energy),
                1, 2e-4)
        << arm;

    // Scores the whole model on the tokens that are predicted from a token after the windows.
    constexpr int64_t kFirst = kLatentSink + kLatentRecent + 1, kScored = 2 * (64 - kFirst);
    std::vector<at::Tensor> log_p;
    double nll = 0, token_kl = 0;
    for (const at::Tensor& hidden : streams)
      log_p.push_back(loop.Logits(hidden).to(at::kDouble).log_softmax(-1));
    for (int64_t text = 0; text < 2; ++text) {
      for (int64_t token = kFirst; token < 64; ++token) {
        const int64_t row = 64 * text + token - 1;
        nll -= log_p[1][row][texts[static_cast<size_t>(text)][static_cast<size_t>(token)]]
                   .item<double>();
        token_kl += log_p[0][row].exp().mul(log_p[0][row] - log_p[1][row]).sum().item<double>();
      }
    }
    const Json& text = ArmOf(report, arm).at("text");
    EXPECT_EQ(text.at("scored_tokens"), kScored);
    EXPECT_NEAR(text.at("perplexity").get<double>() / std::exp(nll / kScored), 1, 1e-4) << arm;
    EXPECT_NEAR(text.at("token_kl").at("mean").get<double>() / (token_kl / kScored), 1, 2e-2)
        << arm;
    EXPECT_GT(token_kl / kScored, 1e-5) << arm;
  }
}

TEST(LatentValidation, CountsWhatTheCacheHolds) {
  const TinyModel model(TestData("families/deepseek_v3"));
  ValidationOptions options = OptionsForLatents({"hadamard", "int4_hadamard", "kivi2", "auto"});
  options.local_only = true;
  const Json report =
      ValidateLatents(model, DeepSeekArtifact(), RandomLatentTexts(17, 1, 64), options);
  const auto bits = [&](const char* arm) {
    return ArmOf(report, arm).at("bits_per_element").at("paper").get<double>();
  };
  const auto of = [](double latent) { return (16 * latent + 8 * 16) / 24; };
  EXPECT_NEAR(bits("bf16"), 16, 1e-12);
  EXPECT_NEAR(bits("hadamard"), of(2 + 32.0 / 16), 1e-12);
  EXPECT_NEAR(bits("auto"), of(2 + 32.0 / 16), 1e-12);
  EXPECT_NEAR(bits("int4_hadamard"), of(4 + 32.0 / 16), 1e-12);
  EXPECT_NEAR(bits("kivi2"), of(2 + 32.0 / 128), 1e-12);  // per channel, like keys
}

// Every method that supports latents must give finite numbers in every family. Keys and values
// share one stored row, so they have the same error.
TEST(LatentValidation, EveryMethodStoresOneRow) {
  for (const char* family : {"deepseek_v3", "glm4_moe_lite", "glm_moe_dsa"}) {
    const TinyModel model(TestData(std::string("families/") + family));
    const fs::path artifact = ArtifactOfLatents(model, std::string("latent_all_") + family, 40);
    ValidationOptions options = OptionsForLatents({"all"});
    options.round_to_bf16 = true;
    const Json report = ValidateLatents(model, artifact, RandomLatentTexts(23, 1, 36), options,
                                        RandomLatentTexts(5, 3, 40));
    std::map<std::string, double> kl;
    for (const Json& arm : report.at("arms")) {
      const std::string name = arm.at("name");
      kl[name] = arm.at("local").at("kl").at("mean");
      EXPECT_TRUE(std::isfinite(kl[name])) << family << " " << name;
      const Json& local = arm.at("local");
      EXPECT_NEAR(local.at("k_rel_error").get<double>(), local.at("v_rel_error").get<double>(),
                  name.find("auto") == 0 ? 1e-2 : 0)
          << family << " " << name;
      EXPECT_FALSE(name.starts_with("runtime_") || name.starts_with("optr")) << name;
    }
    EXPECT_GT(kl.size(), 80u);
    EXPECT_LT(kl.at("oscar_per_head+clip+windows"), kl.at("naive"));
    EXPECT_LT(kl.at("int4_hadamard"), kl.at("hadamard"));
    EXPECT_GT(kl.at("auto"), 0);
    EXPECT_EQ(kl.at("quantizer_off") < 1e-9, true) << kl.at("quantizer_off");
  }
}

TEST(LatentValidation, SaysWhichMethodsHaveNoFormForIt) {
  const TinyModel model(TestData("families/deepseek_v3"));
  for (const char* arm : {"runtime_sglang", "optr", "balanced_values"}) {
    EXPECT_TRUE(Says(ErrorOf<UsageError>([&] {
                       (void)ValidateLatents(model, DeepSeekArtifact(),
                                             RandomLatentTexts(17, 1, 40), OptionsForLatents({arm}),
                                             RandomLatentTexts(5, 2, 40));
                     }),
                     "does not support it"));
  }
}

TEST(LatentExport, WritesADirectoryOfLayers) {
  const TinyModel model(TestData("families/deepseek_v3"));
  const fs::path path = ArtifactOfLatents(model, "latent_oct", 90, Consumer::kSglangOct);
  const Artifact artifact = Artifact::Open(path);
  ASSERT_TRUE(HoldsLatents(artifact));
  const fs::path out = path.parent_path() / "chosen";
  WriteMlaFolder(out, LatentsForSglang(artifact, true));
  const RotationFile read = OpenMlaFolder(out);
  ASSERT_EQ(read.layers.size(), 3u);
  for (const RotationLayer& layer : read.layers) {
    const StoredChoice choice = *artifact.ReadLayer(static_cast<int>(layer.layer_id)).automatic;
    ASSERT_EQ(layer.rotation->shape, (std::vector<int64_t>{kLatentRank, kLatentRank}));
    for (size_t i = 0; i < layer.rotation->values.size(); ++i) {
      EXPECT_EQ(layer.rotation->values[i], static_cast<float>(choice.k.rotation[i]));
      if (layer.q_rotation && !choice.k.query_rotation.empty()) {
        EXPECT_EQ(layer.q_rotation->values[i], static_cast<float>(choice.k.query_rotation[i]));
      }
    }
    for (size_t i = 0; layer.mean && i < layer.mean->values.size(); ++i) {
      EXPECT_EQ(layer.mean->values[i],
                choice.k.mean.empty() ? 0 : static_cast<float>(choice.k.mean[i]));
    }
  }
  // OSCAR's own rotations are exported as bare matrices.
  WriteMlaFolder(path.parent_path() / "oscar", LatentsForSglang(artifact, false));
  const RotationFile own = OpenMlaFolder(path.parent_path() / "oscar");
  EXPECT_FALSE(own.layers[0].mean || own.layers[0].q_rotation);
  EXPECT_EQ(Doubles(own.layers[1].rotation), artifact.ReadLayer(1).k.rotation);
  // An artifact for any consumer also contains a choice without clipping for SGLang's latent cache.
  const Artifact clipped = Artifact::Open(DeepSeekArtifact());
  EXPECT_NE(clipped.ReadLayer(0).automatic->k_codes.clip.at(0), 1);
  EXPECT_NO_THROW(LatentsForSglang(clipped, true));
}

}  // namespace
}  // namespace oscar
