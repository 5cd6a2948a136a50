// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that fitting from a dump gives the same split, covariances and rotations as fitting from
// the model.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "calib/job/layer_file.h"
#include "calib/run/calibrate.h"
#include "calib/run/plan.h"
#include "calib/run/provenance.h"
#include "capture/dump/dump_reader.h"
#include "capture/model/run/attention.h"
#include "capture/model/run/dump_observer.h"
#include "capture/model/spec/rope_json.h"
#include "export/formats/upstream_dump.h"
#include "linalg/base/error.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::vector<std::vector<int32_t>> Sequences() {
  std::vector<std::vector<int32_t>> sequences;
  int32_t id = 3;
  for (int i = 0; i < 20; ++i) {
    auto& sequence = sequences.emplace_back();
    for (int t = 0; t < 40 + 5 * i; ++t) sequence.push_back(id = (id * 73 + 11) % 256);
  }
  return sequences;
}

struct TinyModel {
  fs::path directory = TestData("tiny-qwen3/config.json").parent_path();
  ModelSpec spec = ReadModelSpec(directory);
  Checkpoint checkpoint = Checkpoint::Open(directory);

  std::shared_ptr<ModelSource> Source() const {
    return std::make_shared<ModelSource>(checkpoint, spec, Sequences(), at::kCPU, at::kFloat,
                                         CalibrationLoopOptions());
  }
};

CalibrationInput Input(std::shared_ptr<AttentionSource> source) {
  CalibrationInput input{
      .source = std::move(source), .device = at::kCPU, .dtype = at::kFloat, .options = {}};
  input.options.min_tokens = 1;
  input.options.sink_tokens = 4;
  input.options.recent_tokens = 8;
  return input;
}

std::vector<LayerResult> Calibrate(const CalibrationInput& input, const fs::path& job_path,
                                   const CalibrationHooks& hooks = {}) {
  JobDirectory job(job_path, {}, false);
  RunCalibration(input, job, hooks);
  std::vector<LayerResult> layers;
  for (size_t i = 0; i < job.finished_layers(); ++i)
    layers.push_back(ReadLayerFile(job.LayerPath(i)));
  return layers;
}

void CaptureHdf5(ModelSource& source, const fs::path& path) {
  DumpWriter writer(path, source.sequences(), {});
  DumpObserver observer(writer, nullptr, source.loop().dtype());
  source.Run(0, observer, [](size_t) { return true; });
  writer.Commit({.format = {},
                 .model = "org/tiny@0123",
                 .model_digest = "digest of the model",
                 .tokenizer_digest = "digest of the tokenizer",
                 .data_digest = "digest of the data",
                 .tool_version = "1"});
}

double RelativeError(const std::vector<double>& found, const std::vector<double>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  double error = 0, norm = 0;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    error += (found[i] - expected[i]) * (found[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(error / norm);
}

// Compares two rotations by the diagonal of RᵀCR, which is the same for other signs of eigenvectors
// or another basis of an eigenspace. Their covariances C agree up to `tolerance`.
void ExpectSameRotations(const SideResult& found, const SideResult& expected, double tolerance) {
  EXPECT_LT(RelativeError(found.eigenvalues, expected.eigenvalues), tolerance);
  EXPECT_NEAR(found.importance_max_over_mean, expected.importance_max_over_mean, 1e-6);
  EXPECT_EQ(found.clip_ratio, expected.clip_ratio);
  EXPECT_LT(RelativeError(found.clip_error, expected.clip_error), 1e-3);
}

void ExpectSameFit(const std::vector<LayerResult>& found, const std::vector<LayerResult>& expected,
                   double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE("layer " + std::to_string(i));
    const LayerMoments &a = found[i].moments, &b = expected[i].moments;
    EXPECT_EQ(a.layer_id, b.layer_id);
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_LT(RelativeError(a.query, b.query), tolerance);
    EXPECT_LT(RelativeError(a.key, b.key), tolerance);
    EXPECT_LT(RelativeError(a.key_sum, b.key_sum), tolerance);
    EXPECT_LT(RelativeError(a.value, b.value), tolerance);
    EXPECT_LT(RelativeError(a.attention_output, b.attention_output), tolerance);
    EXPECT_LT(RelativeError(a.diagonal, b.diagonal), tolerance);
    ExpectSameRotations(found[i].k, expected[i].k, tolerance);
    ExpectSameRotations(found[i].v, expected[i].v, tolerance);
    ExpectSameRotations(found[i].k_shared, expected[i].k_shared, tolerance);
    ExpectSameRotations(found[i].v_shared, expected[i].v_shared, tolerance);
    ASSERT_EQ(found[i].arms.size(), expected[i].arms.size());
    for (size_t arm = 0; arm < expected[i].arms.size(); ++arm)
      EXPECT_EQ(found[i].arms[arm].rows, expected[i].arms[arm].rows);
  }
}

TEST(DumpCalibration, AnUpstreamDirectoryEqualsItToo) {
  const TinyModel model;
  const fs::path scratch = TestScratch("upstream-calibration");
  const auto source = model.Source();
  const auto expected = Calibrate(Input(source), scratch / "stream.job");
  UpstreamDumpWriter writer(scratch / "up", source->sequence_lengths());
  DumpObserver observer(writer, nullptr, at::kFloat);
  source->Run(0, observer, [](size_t) { return true; });
  writer.Commit();

  const auto dump = std::make_shared<const UpstreamDump>(scratch / "up", UpstreamDumpOptions{});
  const auto from_dump = std::make_shared<DumpSource>(dump, at::kCPU, at::kFloat);
  ExpectSameFit(Calibrate(Input(from_dump), scratch / "dump.job"), expected, 1e-6);
}

TEST(DumpCalibration, ResumesAtAnyLayer) {
  const TinyModel model;
  const fs::path scratch = TestScratch("dump-resume");
  CaptureHdf5(*model.Source(), scratch / "d.h5");
  const auto source = [&] {
    return std::make_shared<DumpSource>(std::make_shared<const DumpReader>(scratch / "d.h5"),
                                        at::kCPU, at::kFloat);
  };
  Calibrate(Input(source()), scratch / "whole.job");
  CalibrationHooks stop;
  stop.stop_requested = [] { return true; };
  for (int round = 0; round < 3; ++round)
    EXPECT_THROW(Calibrate(Input(source()), scratch / "parts.job", stop), Interrupted);
  Calibrate(Input(source()), scratch / "parts.job", stop);
  const auto bytes = [](const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  for (size_t layer = 0; layer < 4; ++layer) {
    const std::string whole = bytes(scratch / "whole.job" / LayerFileName(layer));
    EXPECT_FALSE(whole.empty());
    EXPECT_EQ(whole, bytes(scratch / "parts.job" / LayerFileName(layer))) << layer;
  }
}

TEST(DumpCalibration, TheManifestSaysItCameFromADump) {
  const TinyModel model;
  const fs::path path = TestScratch("dump-provenance") / "d.h5";
  CaptureHdf5(*model.Source(), path);
  const DumpReader dump(path);
  const Json json = DescribeDump(path, dump);
  EXPECT_EQ(json.at("id").get<std::string>(), "org/tiny");
  EXPECT_EQ(json.at("revision").get<std::string>(), "0123");
  EXPECT_EQ(json.at("dump").at("sha256").get<std::string>(), DigestFile(path).sha256);
  EXPECT_EQ(json.at("dump").at("model_digest").get<std::string>(), "digest of the model");
  EXPECT_EQ(json.at("dump").at("attention_output").get<std::string>(), "recorded");
  EXPECT_EQ(DescribeDumpData(dump).at("digest").get<std::string>(), "digest of the data");
  EXPECT_EQ(DescribeDumpData(dump).at("tokens").at("used").get<int64_t>(), 1750);

  // A changed dump of the same size has another fingerprint.
  const Json before = FingerprintDump(path, dump);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(5000);
  file.put('\x5a');
  file.close();
  EXPECT_NE(FingerprintDump(path, dump), before);
}

TEST(DumpCalibration, ThePlanCountsTheDumpAndNoWeights) {
  const TinyModel model;
  const fs::path path = TestScratch("dump-plan") / "d.h5";
  CaptureHdf5(*model.Source(), path);
  const auto dump = std::make_shared<const DumpReader>(path);
  const CalibrationPlan plan =
      PlanCalibration(Input(std::make_shared<DumpSource>(dump, at::kCPU, at::kFloat)));
  // 4 layers, 1750 tokens, 4 heads of q and of the output, 2 of k and of v, 64 values of 4 bytes.
  EXPECT_EQ(plan.bytes_read, 4u * 1750 * (4 + 4 + 2 + 2) * 64 * 4);
  EXPECT_GT(plan.peak_host, 0u);
}

TEST(DumpCalibration, WhatTheModelSaidComesBackFromADump) {
  const fs::path path = TestScratch("dump-softcap") / "d.h5";
  DumpWriter writer(path, {{1}}, {});
  DumpLayer layer{
      .layer_id = 5,
      .num_q_heads = 1,
      .num_kv_heads = 1,
      .head_dim = 1,
      .v_head_dim = 1,
      .scale = 1,
      .window = {},
      .softcap = 30,
      .sinks = {0.5F},
      .dtype = DType::kF32,
      .facts = DumpModelFacts{
          .rope = RopeToText({.rotary_dim = 0}), .qk_norm = true, .not_foldable = "a reason"}};
  writer.BeginLayer(layer);
  const float one = 1;
  for (const DumpTensor tensor : kDumpTensors)
    writer.WriteSequence(tensor, 0, std::as_bytes(std::span(&one, 1)));
  writer.EndLayer();
  writer.Commit({});
  const auto dump = std::make_shared<const DumpReader>(path);
  EXPECT_EQ(dump->layers()[0], layer);
  const DumpSource source(dump, at::kCPU, at::kFloat);
  const AttentionSpec& attention = source.layers()[0].attention;
  EXPECT_EQ(attention.softcap, 30);
  EXPECT_EQ(attention.sink_logits, layer.sinks);
  EXPECT_TRUE(NeedsExplicitAttention(attention));
  EXPECT_TRUE(attention.qk_norm);
  EXPECT_EQ(WhyNotFoldable(attention), "a reason");
  layer.sinks = {0.5F, 1};
  EXPECT_THROW(CheckDumpLayer(layer, "a layer"), InputError);
}

}  // namespace
}  // namespace oscar
