// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// KVTC's file read by the rules of its loader (jfckm/sglang-kvtc, kvtc_quant.py), of rows that are
// made of a few directions over all layers and heads, turned by a rotary embedding.
#include "export/runtimes/kvtc_files.h"

#include <gtest/gtest.h>

#include <complex>
#include <random>
#include <set>

#include "capture/dump/dump_writer.h"
#include "capture/model/rope_json.h"
#include "export/formats/kvtc_file.h"
#include "export/formats/pt/pt_writer.h"
#include "export/runtimes/exporter.h"
#include "export/runtimes/imports.h"
#include "export/runtimes/kvpress_files.h"
#include "linalg/error.h"
#include "tests/export/formats/torch_python.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr int64_t kLayers = 2, kHeads = 2, kDim = 16, kRank = 5;
constexpr int64_t kChannels = kLayers * kHeads * kDim;
const std::vector<int64_t> kLengths = {400, 100, 500};

RopeSpec Rope() { return {.theta = 100, .rotary_dim = kDim, .layout = RopeLayout::kHalf}; }

// rows[token][layer, head, dim]: a mean and kRank directions, and as a cache holds the keys.
struct Caches {
  std::vector<std::vector<double>> before, keys;
  std::vector<double> mean;

  Caches() {
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    std::vector<std::vector<double>> directions(kRank, std::vector<double>(kChannels));
    for (auto& direction : directions)
      for (double& value : direction) value = normal(random);
    mean.resize(kChannels);
    for (double& value : mean) value = 3 * normal(random);
    for (const int64_t tokens : kLengths) {
      for (int64_t t = 0; t < tokens; ++t) {
        std::vector<double> row = mean;
        for (size_t i = 0; i < kRank; ++i) {
          const double weight = normal(random) * std::pow(0.5, static_cast<double>(i));
          for (size_t c = 0; c < row.size(); ++c) row[c] += weight * directions[i][c];
        }
        before.push_back(row);
        for (size_t head = 0; head < kLayers * kHeads; ++head) {
          double* own = row.data() + head * kDim;
          for (size_t i = 0; i < kDim / 2; ++i) {
            const std::complex<double> turned =
                std::complex<double>(own[i], own[i + kDim / 2]) *
                std::polar(1.0, static_cast<double>(t) *
                                    std::pow(100.0, -2 * static_cast<double>(i) / kDim));
            own[i] = turned.real();
            own[i + kDim / 2] = turned.imag();
          }
        }
        keys.push_back(row);
      }
    }
  }
};

void WriteCaches(const fs::path& path, const Caches& caches, const std::vector<int64_t>& lengths) {
  std::vector<std::vector<int32_t>> sequences;
  for (const int64_t tokens : lengths) sequences.emplace_back(static_cast<size_t>(tokens), 1);
  DumpWriter writer(path, sequences, {});
  for (int layer = 0; layer < kLayers; ++layer) {
    const DumpLayer info{.layer_id = layer,
                         .num_q_heads = kHeads,
                         .num_kv_heads = kHeads,
                         .head_dim = kDim,
                         .v_head_dim = kDim,
                         .scale = 0.25,
                         .window = {},
                         .facts = DumpModelFacts{.rope = RopeToText(Rope()), .not_foldable = ""}};
    writer.BeginLayer(info);
    for (const DumpTensor tensor : kDumpTensors) {
      size_t token = 0;
      for (size_t s = 0; s < lengths.size(); ++s) {
        std::vector<float> values;
        for (int64_t t = 0; t < lengths[s]; ++t, ++token) {
          const std::vector<double>& row =
              tensor == DumpTensor::kK ? caches.keys[token] : caches.before[token];
          const auto begin = row.begin() + layer * kHeads * kDim;
          values.insert(values.end(), begin, begin + kHeads * kDim);
        }
        writer.WriteSequence(tensor, static_cast<int64_t>(s), std::as_bytes(std::span(values)));
      }
    }
    writer.EndLayer();
  }
  writer.Commit({.format = {},
                 .model = "org/model@abc",
                 .model_digest = "m",
                 .tokenizer_digest = "t",
                 .data_digest = "d",
                 .tool_version = "v"});
}

struct ReadSide {
  std::vector<float> mu, basis;
  int64_t rank = 0;
  const PtDict* quant = nullptr;
};

// As KVTCArtifactLoader checks it.
ReadSide SideIn(const PtFile& file, const char* side, const std::string& worker, int64_t channels) {
  const auto* root = file.root().If<PtDict>();
  EXPECT_EQ(*root->Find("version")->If<std::string>(), "v3-worker-quant");
  const auto* params = root->Find(side)->If<PtDict>()->Find(worker)->If<PtDict>();
  ReadSide read;
  const auto& mu = *params->Find("mu")->If<PtTensor>();
  const auto& basis = *params->Find("basis")->If<PtTensor>();
  EXPECT_EQ(mu.dtype, DType::kF32);
  EXPECT_EQ(basis.dtype, DType::kF32);
  EXPECT_EQ(mu.shape, (std::vector<int64_t>{channels}));
  EXPECT_EQ(basis.shape.at(0), channels);
  read.mu = file.Floats(mu, "mu");
  read.basis = file.Floats(basis, "basis");
  read.rank = basis.shape.at(1);
  read.quant = params->Find("quant")->If<PtDict>();
  return read;
}

// Bits of a token and components that a schema keeps.
std::pair<int64_t, int64_t> Kept(const PtValue& schema) {
  int64_t bits = 0, kept = 0;
  for (const PtValue* group : schema.If<PtList>()->items) {
    const PtList& entry = *group->If<PtList>();
    const int64_t size = *entry.items.at(0)->If<int64_t>();
    const std::string type = *entry.items.at(1)->If<std::string>();
    EXPECT_TRUE(std::set<std::string>({"float32", "bfloat16", "int8", "int4"}).contains(type));
    EXPECT_GT(size, 0);
    EXPECT_TRUE(type != "int4" || size % 8 == 0);
    bits += size * (type == "float32" ? 32 : type == "bfloat16" ? 16 : type == "int8" ? 8 : 4);
    if (type.starts_with("int")) bits += 32;
    kept += size;
  }
  EXPECT_EQ(bits % 8, 0);
  return {bits, kept};
}

TEST(KvtcFiles, ComponentsOfAllLayersGiveTheRowsBack) {
  const fs::path scratch = TestScratch("kvtc");
  const Caches caches;
  WriteCaches(scratch / "d.h5", caches, kLengths);
  WriteKvtc(scratch / "d.h5", {}, scratch / "out");
  const PtFile file = PtFile::Open(scratch / "out" / "kvtc.pt");
  for (const char* side : {"keys", "values"}) {
    const ReadSide read = SideIn(file, side, "tp_0_pp_0", kChannels);
    EXPECT_EQ(read.rank, kRank);  // what rows are made of, and no more
    // Tokens that were not fitted to: those of the short sequence.
    for (size_t token = 400; token < 500; token += 9) {
      std::vector<double> back(read.mu.begin(), read.mu.end());
      const std::vector<double>& row = caches.before[token];
      for (int64_t i = 0; i < read.rank; ++i) {
        double component = 0;
        for (size_t c = 0; c < row.size(); ++c)
          component += (row[c] - read.mu[c]) *
                       read.basis[c * static_cast<size_t>(read.rank) + static_cast<size_t>(i)];
        for (size_t c = 0; c < row.size(); ++c)
          back[c] +=
              component * read.basis[c * static_cast<size_t>(read.rank) + static_cast<size_t>(i)];
      }
      for (size_t c = 0; c < row.size(); ++c) EXPECT_NEAR(back[c], row[c], 1e-3) << side;
    }
    for (const int64_t ratio : {4, 8, 16, 32}) {
      const PtValue* schema = read.quant->Find(std::to_string(ratio));
      ASSERT_NE(schema, nullptr) << ratio;
      const auto [bits, kept] = Kept(*schema);
      EXPECT_LE(bits, 16 * kChannels / ratio);
      EXPECT_LE(kept, read.rank);
      EXPECT_TRUE(ratio != 4 || kept == kRank) << kept;  // 256 bits for five components
      EXPECT_TRUE(ratio != 32 || kept < kRank) << kept;  // 32 bits: the last have none
    }
  }
}

TEST(KvtcFiles, WorkersDivideHeadsAndLayers) {
  const fs::path scratch = TestScratch("kvtc-workers");
  const Caches caches;
  WriteCaches(scratch / "d.h5", caches, kLengths);
  WriteKvtc(scratch / "d.h5", {.tp = 2, .pp = 2}, scratch / "out");
  const PtFile file = PtFile::Open(scratch / "out" / "kvtc.pt");
  for (int tp = 0; tp < 2; ++tp) {
    for (int pp = 0; pp < 2; ++pp) {
      const ReadSide read =
          SideIn(file, "keys", "tp_" + std::to_string(tp) + "_pp_" + std::to_string(pp), kDim);
      const auto begin = static_cast<size_t>((pp * kHeads + tp) * kDim);
      for (size_t c = 0; c < kDim; ++c) EXPECT_NEAR(read.mu[c], caches.mean[begin + c], 0.6);
    }
  }
  EXPECT_THROW(WriteKvtc(scratch / "d.h5", {.tp = 3}, scratch / "no"), InputError);
  EXPECT_THROW(WriteKvtc(scratch / "d.h5", {.pp = 4}, scratch / "no"), InputError);
  WriteCaches(scratch / "short.h5", caches, {150, 140});
  EXPECT_THROW(WriteKvtc(scratch / "short.h5", {}, scratch / "no"), InputError);
  EXPECT_FALSE(fs::exists(scratch / "no"));
}

TEST(KvtcFiles, ComeInAndGoOutAgainEqual) {
  const fs::path scratch = TestScratch("kvtc-import");
  const Caches caches;
  WriteCaches(scratch / "d.h5", caches, kLengths);
  WriteKvtc(scratch / "d.h5", {.tp = 2}, scratch / "out");
  ImportPublished((scratch / "out" / "kvtc.pt").string(), Json::object(), scratch / "a");
  const Artifact artifact = Artifact::OpenImported(scratch / "a");
  WriteImportedKvtc(artifact, scratch / "again");
  EXPECT_EQ(ReadText(scratch / "again" / "kvtc.pt"), ReadText(scratch / "out" / "kvtc.pt"));
  EXPECT_THROW(WriteImportedKvpressStats(artifact, scratch / "no"), InputError);
  for (const Exporter& exporter : AllExporters())  // nothing of it is by layers
    EXPECT_THROW(WriteForRuntime(exporter, artifact, {}, scratch / "no"), Error) << exporter.name;
  EXPECT_FALSE(fs::exists(scratch / "no"));
}

TEST(KvtcFiles, ThatTheLoaderWouldNotLoadAreRefused) {
  const fs::path scratch = TestScratch("kvtc-refused");
  const auto floats = [](std::vector<int64_t> shape, size_t count) {
    return std::make_shared<const FloatTensor>(
        FloatTensor{std::move(shape), std::vector<float>(count, 0.5F)});
  };
  std::string why;
  const auto refused_file = [&] {
    try {
      ReadKvtcFile(PtFile::Open(scratch / "k.pt"));
    } catch (const InputError& error) {
      why = error.what();
      return true;
    }
    return false;
  };
  const auto refused = [&](const KvtcSide& side) {
    WriteKvtcFile(scratch / "k.pt",
                  {.keys = {{"tp_0_pp_0", side}}, .values = {{"tp_0_pp_0", side}}});
    return refused_file();
  };
  const KvtcSide sound{floats({16}, 16), floats({16, 8}, 128), {{"4", {{8, "int4"}}}}};
  EXPECT_FALSE(refused(sound));
  EXPECT_TRUE(refused({floats({15}, 15), sound.basis, sound.quant}));
  EXPECT_NE(why.find("mu has 15 channels and basis is [16, 8]"), why.npos) << why;
  const PtOutList schema{PtOutList{int64_t{8}, "int4"}};
  const auto quantized = [&](const PtOutDict& quant) {
    return PtOutDict{
        {PtKey("mu"), sound.mu}, {PtKey("basis"), sound.basis}, {PtKey("quant"), quant}};
  };
  const PtOutDict once = quantized({{PtKey("4"), schema}}),
                  twice = quantized({{PtKey("4"), schema}, {PtKey(int64_t{4}), schema}});
  for (const auto& [keys, expected] :
       {std::pair(PtOutDict{{PtKey("0"), once}}, false),
        {PtOutDict{{PtKey("0"), once}, {PtKey(int64_t{0}), once}}, true},
        {PtOutDict{{PtKey("0"), twice}}, true}}) {
    WritePt(scratch / "k.pt",
            PtOutDict{{PtKey("version"), "v3-worker-quant"},
                      {PtKey("keys"), keys},
                      {PtKey("values"), PtOutDict{{PtKey("0"), once}}}},
            "k");
    EXPECT_EQ(refused_file(), expected);
    EXPECT_EQ(expected, why.find("given twice") != why.npos) << why;
  }
  for (const PtOutList& group :
       {PtOutList{int64_t{8}, int64_t{4}}, PtOutList{"8", "int4"}, PtOutList{int64_t{8}}}) {
    const PtOutDict worker = {{PtKey("mu"), sound.mu},
                              {PtKey("basis"), sound.basis},
                              {PtKey("quant"), PtOutDict{{PtKey("4"), PtOutList{group}}}}};
    WritePt(scratch / "k.pt",
            PtOutDict{{PtKey("version"), "v3-worker-quant"},
                      {PtKey("keys"), PtOutDict{{PtKey("tp_0_pp_0"), worker}}},
                      {PtKey("values"), PtOutDict{{PtKey("tp_0_pp_0"), worker}}}},
            "k");
    EXPECT_TRUE(refused_file());
    EXPECT_NE(why.find("[components, type]"), why.npos) << why;
  }
  EXPECT_TRUE(refused({sound.mu, floats({16}, 16), sound.quant}));
  EXPECT_TRUE(refused({sound.mu, sound.basis, {{"4", {{7, "int4"}}}}}));
  EXPECT_TRUE(refused({sound.mu, sound.basis, {{"4", {{8, "int3"}}}}}));
  EXPECT_TRUE(refused({sound.mu, sound.basis, {{"4", {{8, "int8"}, {1, "int8"}}}}}));
  EXPECT_TRUE(refused({sound.mu, sound.basis, {{"4", {{0, "int8"}}}}}));
}

// What the fork does first: torch.load of nothing but weights.
TEST(KvtcFiles, LoadInTorch) {
  const fs::path scratch = TestScratch("kvtc-torch");
  const auto floats = [](std::vector<int64_t> shape, std::vector<float> values) {
    return std::make_shared<const FloatTensor>(FloatTensor{std::move(shape), std::move(values)});
  };
  const KvtcSide side{floats({2}, {0.5F, -2}), floats({2, 1}, {1, 0}), {{"4", {{1, "int8"}}}}};
  WriteKvtcFile(scratch / "k.pt", {.keys = {{"tp_0_pp_0", side}}, .values = {{"tp_0_pp_0", side}}});
  OSCAR_TORCH_OR_SKIP(loaded, "--value " + (scratch / "k.pt").string());
  const std::string of_side =
      "{'tp_0_pp_0': {'mu': [0.5, -2.0], 'basis': [[1.0], [0.0]], 'quant': {'4': [[1, 'int8']]}}}";
  EXPECT_EQ(loaded,
            "{'version': 'v3-worker-quant', 'keys': " + of_side + ", 'values': " + of_side + "}\n");
}

}  // namespace
}  // namespace oscar
