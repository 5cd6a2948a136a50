// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Queries that are turned here, as complex numbers, dumped, and turned back by what is tested: the
// statistics are those of the queries before, as collect_queries of kvpress takes them (its first
// four tokens left out, the covariance by N - 1).
#include "export/runtimes/kvpress_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <random>
#include <span>

#include "capture/checkpoint/safetensors.h"
#include "capture/dump/dump_writer.h"
#include "capture/files/atomic_file.h"
#include "capture/files/digest.h"
#include "capture/files/strict_json.h"
#include "capture/model/rope_json.h"
#include "export/runtimes/imports.h"
#include "export/runtimes/kvtc_files.h"
#include "linalg/error.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr int64_t kHeads = 4, kDim = 8;
const std::vector<int64_t> kLengths = {9, 5, 12};

RopeSpec Rope(RopeLayout layout) {
  return {.theta = 100, .rotary_dim = 6, .layout = layout, .attention_factor = 1.25};
}

// q[layer][token][head][i] before and after the rotary embedding.
struct Queries {
  std::vector<std::vector<double>> before, after;

  Queries(int layers, const RopeSpec& rope) {
    std::mt19937 random(7);
    std::normal_distribution<double> normal(0.4, 2);
    for (int layer = 0; layer < layers; ++layer) {
      before.emplace_back();
      after.emplace_back();
      for (const int64_t tokens : kLengths)
        for (int64_t t = 0; t < tokens; ++t)
          for (int64_t head = 0; head < kHeads; ++head) {
            std::vector<double> q(kDim);
            for (double& value : q) value = normal(random);
            before.back().insert(before.back().end(), q.begin(), q.end());
            for (int64_t i = 0; i < 3; ++i) {
              const bool half = rope.layout == RopeLayout::kHalf;
              double &a = q[static_cast<size_t>(half ? i : 2 * i)],
                     &b = q[static_cast<size_t>(half ? i + 3 : 2 * i + 1)];
              const double angle =
                  static_cast<double>(t) * std::pow(100.0, -static_cast<double>(i) / 3);
              const std::complex<double> turned =
                  std::complex<double>(a, b) * std::polar(1.25, angle);
              a = turned.real();
              b = turned.imag();
            }
            after.back().insert(after.back().end(), q.begin(), q.end());
          }
    }
  }
};

// With `shared` the other layers read the keys and values of the first.
void WriteDump(const fs::path& path, const Queries& queries, const RopeSpec& rope,
               int first_layer = 0, bool shared = false) {
  std::vector<std::vector<int32_t>> sequences;
  for (const int64_t tokens : kLengths) sequences.emplace_back(static_cast<size_t>(tokens), 1);
  DumpWriter writer(path, sequences, {});
  DumpLayer layer;
  for (size_t i = 0; i < queries.after.size(); ++i) {
    const auto write = [&](DumpTensor tensor) {
      size_t at = 0;
      for (size_t s = 0; s < kLengths.size(); ++s) {
        std::vector<float> values(
            static_cast<size_t>(kLengths[s] * layer.heads(tensor) * layer.dim(tensor)), 1.0F);
        if (tensor == DumpTensor::kQ)
          for (float& value : values) value = static_cast<float>(queries.after[i][at++]);
        writer.WriteSequence(tensor, static_cast<int64_t>(s), std::as_bytes(std::span(values)));
      }
    };
    if (shared && i > 0) {
      writer.BeginReader(layer, layer.readers[i - 1]);
      std::ranges::for_each(kReaderTensors, write);
      continue;
    }
    layer = {.layer_id = first_layer + static_cast<int>(i),
             .num_q_heads = kHeads,
             .num_kv_heads = 2,
             .head_dim = kDim,
             .v_head_dim = kDim,
             .scale = 0.25,
             .window = {},
             .facts = DumpModelFacts{.rope = RopeToText(rope), .not_foldable = ""}};
    for (size_t other = 1; shared && other < queries.after.size(); ++other)
      layer.readers.push_back({first_layer + static_cast<int>(other), kHeads});
    writer.BeginLayer(layer);
    std::ranges::for_each(kDumpTensors, write);
    writer.EndLayer();
  }
  writer.Commit({.format = {},
                 .model = "org/model@abc",
                 .model_digest = "m",
                 .tokenizer_digest = "t",
                 .data_digest = "d",
                 .tool_version = "v"});
}

// Statistics of two layers' queries.
fs::path WrittenStats(const std::string& scratch) {
  const fs::path folder = TestScratch(scratch);
  const RopeSpec rope = Rope(RopeLayout::kHalf);
  WriteDump(folder / "d.h5", Queries(2, rope), rope);
  WriteKvpressStats(folder / "d.h5", folder / "out");
  return folder;
}

std::vector<float> Values(const SafetensorsFile& file, const char* name) {
  const TensorView view = file.tensor(name);
  std::vector<float> values(view.data.size() / sizeof(float));
  std::memcpy(values.data(), view.data.data(), view.data.size());
  return values;
}

TEST(KvpressFiles, AreOfQueriesBeforeTheRotaryEmbedding) {
  struct Case {
    RopeLayout layout;
    int num_layers;
    bool shared = false;
  };
  for (const auto& [layout, num_layers, shared] :
       {Case{RopeLayout::kHalf, 1}, {RopeLayout::kInterleaved, 2}, {RopeLayout::kHalf, 3, true}}) {
    const fs::path scratch = TestScratch("kvpress");
    const Queries queries(num_layers, Rope(layout));
    WriteDump(scratch / "d.h5", queries, Rope(layout), 0, shared);
    WriteKvpressStats(scratch / "d.h5", scratch / "out");
    const SafetensorsFile file = SafetensorsFile::Open(scratch / "out" / "model.safetensors");
    EXPECT_EQ(file.tensor("query_mean").shape, (std::vector<int64_t>{num_layers, kHeads, kDim}));
    EXPECT_EQ(file.tensor("query_cov").shape,
              (std::vector<int64_t>{num_layers, kHeads, kDim, kDim}));
    const std::vector<float> mean = Values(file, "query_mean"), cov = Values(file, "query_cov");
    for (int64_t layer = 0; layer < num_layers; ++layer)
      for (int64_t head = 0; head < kHeads; ++head) {
        std::vector<const double*> kept;
        int64_t token = 0;
        for (const int64_t tokens : kLengths)
          for (int64_t t = 0; t < tokens; ++t, ++token)
            if (t >= 4)
              kept.push_back(queries.before[static_cast<size_t>(layer)].data() +
                             (token * kHeads + head) * kDim);
        const auto count = static_cast<double>(kept.size());
        double mu[kDim] = {};
        for (const double* q : kept)
          for (int64_t i = 0; i < kDim; ++i) mu[i] += q[i] / count;
        const int64_t at = layer * kHeads + head;
        for (int64_t i = 0; i < kDim; ++i) {
          EXPECT_NEAR(mean[static_cast<size_t>(at * kDim + i)], mu[i], 1e-5);
          for (int64_t j = 0; j < kDim; ++j) {
            double sum = 0;
            for (const double* q : kept) sum += (q[i] - mu[i]) * (q[j] - mu[j]);
            EXPECT_NEAR(cov[static_cast<size_t>((at * kDim + i) * kDim + j)], sum / (count - 1),
                        1e-4);
          }
        }
      }
    const Json config = ReadJsonFile((scratch / "out" / "config.json").string());
    EXPECT_EQ(config.at("num_layers"), num_layers);
    EXPECT_EQ(config.at("num_heads"), kHeads);
    EXPECT_EQ(config.at("head_dim"), kDim);
    EXPECT_EQ(config.at("n_sink"), 4);
  }
}

TEST(KvpressFiles, CountEveryLayer) {
  const fs::path scratch = TestScratch("kvpress-layers");
  const RopeSpec rope = Rope(RopeLayout::kHalf);
  WriteDump(scratch / "d.h5", Queries(2, rope), rope, 1);
  EXPECT_THROW(WriteKvpressStats(scratch / "d.h5", scratch / "out"), InputError);
  EXPECT_FALSE(fs::exists(scratch / "out"));
}

TEST(KvpressFiles, ComeInAndGoOutAgainEqual) {
  const fs::path scratch = WrittenStats("kvpress-import");
  ImportPublished((scratch / "out").string(), Json::object(), scratch / "a");
  const Artifact artifact = Artifact::OpenImported(scratch / "a");
  EXPECT_EQ(artifact.manifest().at("model").at("id"),
            ReadJsonFile((scratch / "out" / "config.json").string()).at("model_name"));
  WriteImportedKvpressStats(artifact, scratch / "again");
  for (const char* file : {"model.safetensors", "config.json"})
    EXPECT_EQ(ReadText(scratch / "again" / file), ReadText(scratch / "out" / file)) << file;
  EXPECT_THROW(WriteImportedKvtc(artifact, scratch / "no"), InputError);

  const fs::path stats = scratch / "out" / "model.safetensors";
  const SafetensorsFile written = SafetensorsFile::Open(stats);
  std::map<std::string, FloatTensor> tensors;
  for (const char* name : {"query_mean", "query_cov"})
    tensors[name] = {written.tensor(name).shape, Values(written, name)};
  for (const char* name : {"query_mean", "query_cov"}) {  // one of the two by itself
    auto changed = tensors;
    changed.at(name).shape.push_back(1);
    std::vector<SafetensorsWriter::Declaration> declared;
    for (const auto& [of, tensor] : changed) declared.push_back({of, DType::kF32, tensor.shape});
    fs::remove(stats);
    SafetensorsWriter writer(stats, declared);
    for (const auto& [of, tensor] : changed)
      writer.Write(of, std::as_bytes(std::span(tensor.values)));
    writer.Commit();
    EXPECT_THROW(ImportPublished((scratch / "out").string(), Json::object(), scratch / "b"),
                 InputError)
        << name;
  }

  Json config = ReadJsonFile((scratch / "out" / "config.json").string());
  config["num_heads"] = 3;
  WriteFileAtomically(scratch / "out" / "config.json", config.dump());
  EXPECT_THROW(ImportPublished((scratch / "out").string(), Json::object(), scratch / "b"),
               InputError);
  EXPECT_FALSE(fs::exists(scratch / "b"));
}

// Its class brings transformers and datasets with it, so tools/setup.sh does not install it; where
// somebody has put it into .deps/consumers, it judges.
TEST(KvpressFiles, LoadInKvpress) {
  const fs::path scratch = WrittenStats("kvpress-package");
  const ProgramExit exit =
      RunProgram("/usr/bin/env",
                 {"-u", "LD_PRELOAD", std::string("PYTHONPATH=") + OSCAR_CONSUMERS, OSCAR_PYTHON,
                  OSCAR_CONSUMERS_SCRIPT, "kvpress", (scratch / "out").string()});
  if (exit.code == 77 || exit.code == 127) GTEST_SKIP() << "no Python with kvpress";
  ASSERT_EQ(exit.code, 0) << exit.err;
  const SafetensorsFile file = SafetensorsFile::Open(scratch / "out" / "model.safetensors");
  for (const char* name : {"query_mean", "query_cov"}) {
    const std::vector<float> values = Values(file, name);
    const std::string line = name + (" " + Sha256Hex(std::as_bytes(std::span(values))));
    EXPECT_NE(exit.out.find(line), std::string::npos) << line << "\n" << exit.out;
  }
}

}  // namespace
}  // namespace oscar
