// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the bundled model's own queries, keys and values through the real kernels.
#include "export/validate/kernel_validation.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "capture/model/run/device.h"
#include "export/validate/validate.h"
#include "linalg/base/error.h"
#include "tests/export/validate/tiny_validation.h"

namespace oscar {
namespace {

constexpr int64_t kTexts = 2, kLength = 700;

Json ValidateKernels(const std::filesystem::path& path, KernelValidationOptions options = {}) {
  const TinyModel model;
  const Artifact artifact = Artifact::Open(path);
  const at::Device device("cuda:0");
  options.num_sequences = kTexts;
  KernelValidation kernels(artifact, device, options);
  ValidationOptions validation = QuickOptions({"naive"});
  validation.local_only = true;
  ValidateModel(
      model.checkpoint, model.spec, device, at::kFloat,
      {.texts = TinyTexts(1, kTexts, kLength), .needles = {}}, artifact, validation,
      {.on_layer = {}, .on_part = {}, .stop_requested = {}, .on_arm = {}, .beside = &kernels});
  return kernels.Report();
}

TEST(KernelValidation, NeedsAGpu) {
  const Artifact artifact = Artifact::Open(TinyArtifact());
  EXPECT_THROW(KernelValidation(artifact, at::kCPU, {}), ResourceError);
}

TEST(KernelValidation, CodesAreTheCodecsAndOutputsTheReferences) {
  if (NumGpus() == 0) GTEST_SKIP() << "needs a GPU";
  const TinyModel model;
  const AttentionSpec& spec = model.spec.layers[0].attention;
  for (const int bits : {2, 3, 4}) {
    const Json report = ValidateKernels(TinyArtifact(), {.k_bits = bits, .v_bits = 6 - bits});
    EXPECT_TRUE(report["passed"]) << report.dump(1);
    EXPECT_EQ(report["differing_codes"], 0);
    EXPECT_EQ(report["differing_metadata"], 0);
    EXPECT_EQ(report["differing_simulated"], 0);
    EXPECT_EQ(report["rotations"], "per_head");
    EXPECT_EQ(report["tokens"], kTexts * kLength);
    EXPECT_EQ(report["queries"], kTexts * 8);
    const int64_t quantized = QuantizedTokens(kLength, {64, 256});
    EXPECT_EQ(quantized, 376);
    EXPECT_EQ(report["codes"], kTexts * quantized * spec.num_kv_heads *
                                   (spec.head_dim + spec.v_head_dim) *
                                   static_cast<int64_t>(model.spec.layers.size()));
    for (const Json& layer : report["layers"]) {
      EXPECT_GT(layer["write_us"], 0);
      EXPECT_GT(layer["decode_us"], 0);
      for (const Json& head : layer["heads"]) {
        EXPECT_GT(head["kernel_error"], 0);  // measured, so not exactly 0
        EXPECT_LT(head["kernel_error"], 0.001) << layer["layer_id"];
        EXPECT_LT(head["total_error"], 0.6) << layer["layer_id"];
      }
    }
  }
}

TEST(KernelValidation, WindowsAsLongAsTheTextLeaveRoundingAlone) {
  if (NumGpus() == 0) GTEST_SKIP() << "needs a GPU";
  const Json report = ValidateKernels(TinyArtifact(), {.windows = {64, 1024}});
  EXPECT_EQ(report["codes"], 0);
  EXPECT_LT(report["total_error"], 0.02);
  const Json quantized = ValidateKernels(TinyArtifact());
  EXPECT_GT(quantized["total_error"], report["total_error"]);
  // More bits give a smaller error, so the codes have the requested number of bits.
  const Json fine = ValidateKernels(TinyArtifact(), {.k_bits = 4, .v_bits = 4});
  EXPECT_LT(fine["total_error"].get<double>(), 0.6 * quantized["total_error"].get<double>());
}

// Validates the kernels on one layer of random queries, keys and values with the given attention.
Json ValidateLayer(const AttentionSpec& attention, const at::Tensor& sinks) {
  const TinyModel model;
  const Artifact artifact = Artifact::Open(TinyArtifact());
  LayerSpec layer = model.spec.layers[0];
  layer.attention = attention;
  at::manual_seed(11);
  const auto rows = [](int64_t heads, int64_t dim, double scale) {
    return at::randn({kLength, heads, dim}, at::kFloat).mul_(scale).cuda();
  };
  const at::Tensor q = rows(attention.num_q_heads, attention.head_dim, 4);
  const at::Tensor k = rows(attention.num_kv_heads, attention.head_dim, 1);
  const at::Tensor v = rows(attention.num_kv_heads, attention.v_head_dim, 1);
  KernelValidation kernels(artifact, q.device(), {.num_sequences = 1});
  kernels.OnLayerBegin(layer);
  kernels.OnAttention({layer, 0, 0, 0, q, k, v, q, 0, sinks});
  return kernels.Report();
}

// The kernel must apply windows, soft caps and sinks: it agrees with float64 attention that applies
// them, which is far from attention without them.
TEST(KernelValidation, SoftCapsSinksAndWindowsAreTheModels) {
  if (NumGpus() == 0) GTEST_SKIP() << "needs a GPU";
  const AttentionSpec plain = TinyModel().spec.layers[0].attention;
  AttentionSpec capped = plain, sunk = plain, all = plain;
  capped.softcap = 2;
  sunk.sinks = all.sinks = "sinks";
  sunk.sink_logits.assign(static_cast<size_t>(plain.num_q_heads), 9.0f);
  all.sink_logits = sunk.sink_logits;
  all.softcap = 5;
  all.window = 300;
  const at::Tensor sinks =
      at::linspace(4, 12, plain.num_q_heads, at::TensorOptions().dtype(at::kBFloat16)).cuda();
  for (const AttentionSpec& spec : {plain, capped, sunk, all}) {
    // Sinks come from the layer loop, or from the layer itself, as in a dump.
    for (const at::Tensor& shown : {sinks, at::Tensor()}) {
      const Json report = ValidateLayer(spec, spec.sinks.empty() ? at::Tensor() : shown);
      EXPECT_TRUE(report["passed"]) << report.dump(1);
      EXPECT_GT(report["kernel_error"], 0);
    }
  }
}

TEST(KernelValidation, TheTotalErrorIsThatOfTheSimulatedArm) {
  if (NumGpus() == 0) GTEST_SKIP() << "needs a GPU";
  ValidationOptions options = QuickOptions({"oscar_per_head+clip+windows"});
  options.local_only = true;
  const Json v = ValidateTiny(TinyArtifact(), options, at::Device("cuda:0"), kLength);
  const double simulated =
      ArmOf(v, "oscar_per_head+clip+windows").at("local").at("output_rel_error").get<double>();
  const double total = ValidateKernels(TinyArtifact())["total_error"].get<double>();
  EXPECT_NEAR(total / simulated, 1, 0.5);  // other rows, and a cache in bf16
}

}  // namespace
}  // namespace oscar
