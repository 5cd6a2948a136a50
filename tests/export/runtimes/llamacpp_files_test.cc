// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks the tensors by the product that llama.cpp's branch computes: ggml_mul_mat(rot, x). By
// ggml.h, result[i] = sum over k of rot[k + ne0 i] x[k].
#include <gtest/gtest.h>

#include <fstream>

#include "capture/files/strict_json.h"
#include "export/artifact/foreign_rotations.h"
#include "export/runtimes/exporter.h"
#include "linalg/base/error.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/export/runtimes/exporter_named.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::vector<float> MulMat(const ReadGguf& file, const std::string& name,
                          const std::vector<float>& x) {
  const ReadGguf::Tensor& rot = file.Of(name);
  const std::vector<float> values = rot.Floats(file);
  EXPECT_EQ(rot.dims, (std::vector<uint64_t>{x.size(), x.size()}));
  std::vector<float> result(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t k = 0; k < x.size(); ++k) result[i] += values[k + rot.dims[0] * i] * x[k];
  return result;
}

// Returns x times `rotation` ([d, d], row-major).
std::vector<float> TimesRotation(const std::vector<float>& x, const std::vector<double>& rotation) {
  std::vector<float> result(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t k = 0; k < x.size(); ++k)
      result[i] += static_cast<float>(rotation[k * x.size() + i]) * x[k];
  return result;
}

std::vector<float> Ramp(size_t size) {
  std::vector<float> x(size);
  for (size_t i = 0; i < size; ++i) x[i] = static_cast<float>(i) - 3.5F;
  return x;
}

void ExpectChoice(const ReadGguf& file, const Artifact& artifact) {
  for (int i = 0; i < 2; ++i) {
    const StoredChoice choice = artifact.ReadChoice(i, kHeadlineChoice);
    const std::string name = "blk." + std::to_string(i) + ".attn_";
    EXPECT_EQ(MulMat(file, name + "k_rot.weight", Ramp(64)),
              TimesRotation(Ramp(64), choice.k.rotation));
    EXPECT_EQ(MulMat(file, name + "v_rot.weight", Ramp(32)),
              TimesRotation(Ramp(32), choice.v.rotation));
  }
  EXPECT_EQ(ReadGguf::As<float>(file.entries.at("oscar.clip_ratio")), 0.9F);
  EXPECT_EQ(ReadGguf::As<uint32_t>(file.entries.at("oscar.sink_tokens")), 64U);
  EXPECT_EQ(ReadGguf::As<uint32_t>(file.entries.at("oscar.recent_tokens")), 256U);
  EXPECT_EQ(file.entries.at("oscar.artifact_sha256"), artifact.identity());
}

// Returns a model's file as the converter of llama.cpp writes it, with two tensors.
RawGguf Model(const std::string& arch = "qwen3") {
  RawGguf model;
  model.entries = {RawEntry("general.architecture", arch),
                   RawEntry(arch + ".block_count", 2),
                   RawEntry(arch + ".attention.head_count", 4),
                   RawEntry(arch + ".attention.head_count_kv", 2),
                   RawEntry(arch + ".embedding_length", 512),
                   RawEntry(arch + ".attention.key_length", 64),
                   RawEntry(arch + ".attention.value_length", 32),
                   RawEntry("tokenizer.ggml.tokens", 9,
                            RawNumber<uint32_t>(8) + RawNumber<uint64_t>(1) + RawText("<s>"))};
  model.infos = {RawInfo("token_embd.weight", {32, 3}, 8, 0),
                 RawInfo("output_norm.weight", {5}, 0, 128)};
  for (int i = 0; i < 160; ++i) model.data += static_cast<char>(3 * i);
  return model;
}

TEST(LlamacppFiles, TurnKeysAndValuesAsChosen) {
  const fs::path scratch = TestScratch("llamacpp-chosen");
  const Artifact artifact = WideArtifact(scratch / "a", Consumer::kLlamacpp);
  WriteForRuntime(ExporterNamed("llamacpp"), artifact, {}, scratch / "out");
  const ReadGguf file(ReadText(scratch / "out" / "rotations.gguf"));
  EXPECT_EQ(file.version, 3U);
  EXPECT_EQ(file.tensors.size(), 4U);
  EXPECT_EQ(file.entries.at("general.type"), "oscar-rotations");
  EXPECT_EQ(file.entries.at("general.architecture"), "oscar");
  ExpectChoice(file, artifact);
  EXPECT_EQ(Json::parse(file.entries.at("oscar.calibration")).at("model").at("id"), "example/Tiny");
  const std::string launch = ReadText(scratch / "out" / "launch.txt");
  for (const char* said :
       {"LLAMA_KV_NO_HADAMARD=1 ", "LLAMA_KV_CLIP_RATIO=0.9 ", "LLAMA_KV_HP_SINK=64 ",
        "LLAMA_KV_HP_RECENT=256 ", "-m MERGED.gguf --cache-type-k q2_0 --cache-type-v q2_0\n",
        "--merge-into MODEL.gguf"})
    EXPECT_TRUE(Says(launch, said));
}

// LlamaModel.permute in convert_hf_to_gguf.py reorders a head's rows from (2, d / 2) to (d / 2, 2).
TEST(LlamacppFiles, TurnKeysInTheOrderOfALlamasGguf) {
  const fs::path scratch = TestScratch("llamacpp-llama");
  WideArtifact(scratch / "a", Consumer::kLlamacpp);
  Json manifest = ReadJsonFile((scratch / "a" / "manifest.json").string());
  manifest["model"]["model_type"] = "llama";
  std::ofstream(scratch / "a" / "manifest.json") << CanonicalJson(manifest);
  const Artifact artifact = Artifact::Open(scratch / "a");
  WriteForRuntime(ExporterNamed("llamacpp"), artifact, {}, scratch / "out");
  const ReadGguf file(ReadText(scratch / "out" / "rotations.gguf"));
  const std::vector<float> key = Ramp(64);
  std::vector<float> reordered;
  for (size_t pair = 0; pair < 32; ++pair)
    for (size_t half = 0; half < 2; ++half) reordered.push_back(key[half * 32 + pair]);
  const std::vector<float> stored = MulMat(file, "blk.1.attn_k_rot.weight", reordered),
                           expected = TimesRotation(
                               key, artifact.ReadChoice(1, kHeadlineChoice).k.rotation);
  for (size_t i = 0; i < 64; ++i) EXPECT_NEAR(stored[i], expected[i], 1e-3);
  EXPECT_EQ(MulMat(file, "blk.1.attn_v_rot.weight", Ramp(32)),
            TimesRotation(Ramp(32), artifact.ReadChoice(1, kHeadlineChoice).v.rotation));
}

TEST(LlamacppFiles, TurnAsOscarsOwnDo) {
  const fs::path scratch = TestScratch("llamacpp-own");
  const Artifact artifact = WideArtifact(scratch / "a", Consumer::kLlamacpp);
  WriteForRuntime(ExporterNamed("llamacpp"), artifact, {.chosen = false}, scratch / "out");
  const ReadGguf file(ReadText(scratch / "out" / "rotations.gguf"));
  const SglangExport own = ToSglang(artifact);
  for (const SglangLayer& layer : own.layers) {
    const std::vector<float>& k = layer.k.shared->values;
    EXPECT_EQ(
        MulMat(file, "blk." + std::to_string(layer.layer_id) + ".attn_k_rot.weight", Ramp(64)),
        TimesRotation(Ramp(64), {k.begin(), k.end()}));
  }
  EXPECT_EQ(ReadGguf::As<float>(file.entries.at("oscar.clip_ratio")),
            static_cast<float>(own.serving.k_clip_ratio));
}

TEST(LlamacppFiles, MergeIntoACopyOfAModel) {
  const fs::path scratch = TestScratch("llamacpp-merge");
  const Artifact artifact = WideArtifact(scratch / "a", Consumer::kLlamacpp);
  const fs::path model = Model().Write(scratch / "tiny.gguf");
  WriteForRuntime(ExporterNamed("llamacpp"), artifact, {.merge_into = model}, scratch / "out");
  const ReadGguf old(ReadText(model)), file(ReadText(scratch / "out" / "tiny.gguf"));
  EXPECT_EQ(old.bytes, Model().Bytes());  // the model's file is only read
  EXPECT_FALSE(fs::exists(scratch / "out" / "rotations.gguf"));
  ExpectChoice(file, artifact);
  // The copy has the model's entries, infos and values, each at the beginning of its part.
  for (const auto& [begin, of_file, size] :
       {std::tuple<size_t, size_t, size_t>{24, 24, old.entries_end - 24},
        {old.entries_end, file.entries_end, old.infos_end - old.entries_end},
        {old.data_begin, file.data_begin, old.bytes.size() - old.data_begin}})
    EXPECT_EQ(file.bytes.substr(of_file, size), old.bytes.substr(begin, size));
  ASSERT_EQ(file.tensors.size(), 6U);
  EXPECT_EQ(file.tensors[2].offset, old.bytes.size() - old.data_begin);
  for (const auto& [key, value] : old.entries) EXPECT_EQ(file.entries.at(key), value);
  EXPECT_EQ(file.entries.count("general.type"), 0U);  // still the file of a model
  const std::string launch = ReadText(scratch / "out" / "launch.txt");
  EXPECT_TRUE(Says(launch, "/out/tiny.gguf --cache-type-k"));
  // The copy already has the tensors, so merging again is refused.
  EXPECT_THROW(WriteForRuntime(ExporterNamed("llamacpp"), artifact,
                               {.merge_into = scratch / "out" / "tiny.gguf"}, scratch / "again"),
               InputError);
  EXPECT_FALSE(fs::exists(scratch / "again"));
}

TEST(LlamacppFiles, AreRefusedForAnotherModel) {
  const fs::path scratch = TestScratch("llamacpp-other-model");
  const Artifact artifact = WideArtifact(scratch / "a", Consumer::kLlamacpp);
  const auto merge = [&](size_t entry, const std::string& raw) -> std::string {
    RawGguf model = Model();
    model.entries.at(entry) = raw;
    model.Write(scratch / "tiny.gguf");
    fs::remove_all(scratch / "out");
    try {
      WriteForRuntime(ExporterNamed("llamacpp"), artifact, {.merge_into = scratch / "tiny.gguf"},
                      scratch / "out");
      return "";
    } catch (const InputError& error) {
      EXPECT_FALSE(fs::exists(scratch / "out"));
      return error.what();
    }
  };
  const auto expect = [&](size_t entry, const std::string& raw, const std::string& words) {
    const std::string said = merge(entry, raw);
    EXPECT_TRUE(Says(said, words));
  };
  expect(0, RawEntry("other", "qwen3"), "no general.architecture");
  expect(0, RawEntry("general.architecture", "llama"), "llama.block_count is missing");
  expect(1, RawEntry("qwen3.block_count", 3), "block_count is 3, but the artifact's model has 2");
  expect(3, RawEntry("qwen3.attention.head_count_kv", 4), "head_count_kv is 4");
  expect(5, RawEntry("qwen3.attention.key_length", 128), "key_length (layer 0) is 128");
  expect(6, RawEntry("qwen3.attention.value_length", 64), "value_length (layer 0) is 64");
  // If key_length is missing, it is embedding_length / head_count.
  expect(5, RawEntry("other", 1), "key_length (layer 0) is 128");
  expect(7, RawEntry("split.count", 2), "llama-gguf-split");
  EXPECT_EQ(merge(7, RawEntry("split.count", 1)), "");
}

TEST(LlamacppFiles, AreRefusedWhereItsCacheCannotHoldThem) {
  const fs::path scratch = TestScratch("llamacpp-refused");
  const auto refused = [&](const Artifact& artifact, const std::string& words) {
    EXPECT_TRUE(Says(ErrorOf<InputError>([&] {
                       WriteForRuntime(ExporterNamed("llamacpp"), artifact, {}, scratch / "out");
                     }),
                     words));
    EXPECT_FALSE(fs::exists(scratch / "out"));
  };
  refused(WideArtifact(scratch / "later", Consumer::kLlamacpp, 1),
          "found layer 1 instead of layer 0");
  refused(WideArtifact(scratch / "narrow", Consumer::kLlamacpp, 0, 8), "head dimension 8");
}

}  // namespace
}  // namespace oscar
