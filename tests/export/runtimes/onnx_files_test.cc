// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the files with a second protocol buffer parser (protobuf.dev/programming-guides/encoding)
// and the field numbers of onnx/onnx.proto.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "capture/files/atomic_file.h"
#include "capture/files/strict_json.h"
#include "export/artifact/foreign_rotations.h"
#include "export/formats/onnx_initializers.h"
#include "export/runtimes/exporter.h"
#include "tests/export/artifact/chosen_artifact.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/export/runtimes/exporter_named.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Values of a message by field number: integers, or the bytes of length-delimited fields.
struct Fields {
  std::multimap<int, uint64_t> numbers;
  std::multimap<int, std::string> bytes;

  std::string Bytes(int field) const {
    EXPECT_EQ(bytes.count(field), 1U) << field;
    return bytes.find(field)->second;
  }
};

Fields Parse(const std::string& message) {
  Fields fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(message.at(at++));
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t key = varint();
    const int field = static_cast<int>(key >> 3);
    const uint64_t value = varint();
    if ((key & 7) == 0) {
      fields.numbers.emplace(field, value);
      continue;
    }
    EXPECT_EQ(key & 7, 2U);
    fields.bytes.emplace(field, message.substr(at, value));
    at += value;
  }
  EXPECT_EQ(at, message.size());
  return fields;
}

struct OnnxTensor {
  std::vector<uint64_t> dims;
  std::vector<float> values;
};

std::map<std::string, OnnxTensor> Initializers(const Fields& model) {
  std::map<std::string, OnnxTensor> tensors;
  const Fields graph = Parse(model.Bytes(7));
  const auto [begin, end] = graph.bytes.equal_range(5);
  for (auto it = begin; it != end; ++it) {
    const Fields fields = Parse(it->second);
    EXPECT_EQ(fields.numbers.find(2)->second, 1U);  // FLOAT
    OnnxTensor tensor;
    const auto [first, last] = fields.numbers.equal_range(1);
    for (auto dim = first; dim != last; ++dim) tensor.dims.push_back(dim->second);
    const std::string raw = fields.Bytes(9);
    tensor.values.resize(raw.size() / sizeof(float));
    std::memcpy(tensor.values.data(), raw.data(), raw.size());
    EXPECT_TRUE(tensors.emplace(fields.Bytes(8), tensor).second);
  }
  return tensors;
}

Json Metadata(const Fields& model) {
  const Fields entry = Parse(model.Bytes(14));
  EXPECT_EQ(entry.Bytes(1), "oscar");
  return Json::parse(entry.Bytes(2));
}

TEST(OnnxFiles, HoldTheChoicePerHeadWithARatioForEachLayer) {
  const fs::path scratch = TestScratch("onnx-chosen");
  std::vector<SampleRecipe> recipes(2, SampleRecipes()[0]);
  recipes[1].keys.per_head = true;
  recipes[1].k_clip = {0.88};
  WriteChosenArtifact(scratch / "a", recipes, {.consumer = Consumer::kOnnx, .fold = false});
  const Artifact artifact = Artifact::Open(scratch / "a");
  WriteForRuntime(ExporterNamed("onnx"), artifact, {}, scratch / "out");
  const Fields model = Parse(ReadText(scratch / "out" / "rotations.onnx"));
  const auto tensors = Initializers(model);
  EXPECT_EQ(tensors.size(), 4U);
  const StoredChoice shared = artifact.ReadChoice(0, kHeadlineChoice),
                     heads = artifact.ReadChoice(1, kHeadlineChoice);
  const OnnxTensor& k0 = tensors.at("model.layers.0.attn.R_K");
  EXPECT_EQ(k0.dims, (std::vector<uint64_t>{2, 8, 8}));
  EXPECT_EQ(k0.values, Twice(shared.k.rotation));
  EXPECT_EQ(tensors.at("model.layers.0.attn.R_V").dims, (std::vector<uint64_t>{2, 4, 4}));
  EXPECT_EQ(tensors.at("model.layers.1.attn.R_K").values,
            std::vector<float>(heads.k.rotation.begin(), heads.k.rotation.end()));
  EXPECT_EQ(tensors.at("model.layers.1.attn.R_V").values, Twice(heads.v.rotation));
  const Json said = Metadata(model);
  EXPECT_EQ(said.at("layers").at("0").at("k_clip_ratio"), 0.92);
  EXPECT_EQ(said.at("layers").at("1").at("k_clip_ratio"), 0.88);
  EXPECT_EQ(said.at("calibration").at("artifact_sha256"), artifact.identity());
}

TEST(OnnxFiles, HoldOscarsOwn) {
  const fs::path scratch = TestScratch("onnx-own");
  WriteSampleArtifact(scratch / "a");
  const Artifact artifact = Artifact::Open(scratch / "a");
  WriteForRuntime(ExporterNamed("onnx"), artifact, {.chosen = false}, scratch / "out");
  const SglangExport own = ToSglang(artifact);
  const Fields model = Parse(ReadText(scratch / "out" / "rotations.onnx"));
  const auto tensors = Initializers(model);
  for (const SglangLayer& layer : own.layers) {
    const std::string name = "model.layers." + std::to_string(layer.layer_id) + ".attn.";
    EXPECT_EQ(tensors.at(name + "R_K").values,
              Twice({layer.k.shared->values.begin(), layer.k.shared->values.end()}));
  }
  EXPECT_EQ(Metadata(model).at("calibration").at("value_target"), own.value_target);
  EXPECT_EQ(Metadata(model).at("layers").at("11").at("v_clip_ratio"), own.serving.v_clip_ratio);
}

// Runs launch.txt with a stand-in for the module onnx, whose models are lists of names.
TEST(OnnxFiles, TheScriptAddsThemToACopyOfTheModel) {
  const fs::path scratch = TestScratch("onnx-script");
  WriteSampleArtifact(scratch / "a");
  WriteForRuntime(ExporterNamed("onnx"), Artifact::Open(scratch / "a"), {.chosen = false},
                  scratch / "out");
  WriteFileAtomically(scratch / "onnx.py",
                      "from types import SimpleNamespace as Of\n"
                      "def load(path):\n"
                      "  text = open(path, 'rb').read()\n"
                      "  names = [b'R'] if path.endswith('/rotations.onnx') else text.split()\n"
                      "  return Of(graph=Of(initializer=names))\n"
                      "def save(model, path):\n"
                      "  open(path, 'wb').write(b' '.join(model.graph.initializer))\n");
  WriteFileAtomically(scratch / "model.onnx", "W B");
  const ProgramExit exit = RunProgram(
      "/usr/bin/env", {"-u", "LD_PRELOAD", "PYTHONPATH=" + scratch.string(), "sh",
                       (scratch / "out" / "launch.txt").string(), (scratch / "model.onnx").string(),
                       (scratch / "merged.onnx").string()});
  ASSERT_EQ(exit.code, 0) << exit.err;
  EXPECT_EQ(ReadText(scratch / "merged.onnx"), "W B R");
  EXPECT_EQ(ReadText(scratch / "model.onnx"), "W B");
}

}  // namespace
}  // namespace oscar
