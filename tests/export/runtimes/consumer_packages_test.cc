// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Loads our files with their consumers' packages. Every float32 must equal the value of the choice.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "capture/files/digest.h"
#include "export/runtimes/exporter.h"
#include "tests/calib/moments/sample_moments.h"
#include "tests/export/artifact/chosen_artifact.h"
#include "tests/export/runtimes/exporter_named.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Returns the SHA-256 of each tensor by its name; empty if the package is not installed.
std::map<std::string, std::string> LoadedBy(const std::string& package, const fs::path& file) {
  const ProgramExit exit =
      RunProgram("/usr/bin/env", {"-u", "LD_PRELOAD", std::string("PYTHONPATH=") + OSCAR_CONSUMERS,
                                  OSCAR_PYTHON, OSCAR_CONSUMERS_SCRIPT, package, file.string()});
  constexpr int kNoPackage = 77, kNoPython = 127;
  std::map<std::string, std::string> tensors;
  if (exit.code == kNoPackage || exit.code == kNoPython) return tensors;
  EXPECT_EQ(exit.code, 0) << exit.err;
  std::istringstream lines(exit.out);
  for (std::string name, digest; lines >> name >> digest;) tensors[name] = digest;
  return tensors;
}

std::string Digest(const std::vector<float>& values) {
  return Sha256Hex(std::as_bytes(std::span(values)));
}
std::vector<float> Transposed(const std::vector<double>& matrix, int64_t dim) {
  std::vector<float> transposed;
  for (int64_t i = 0; i < dim; ++i)
    for (int64_t j = 0; j < dim; ++j)
      transposed.push_back(static_cast<float>(matrix[static_cast<size_t>(j * dim + i)]));
  return transposed;
}

TEST(ConsumerPackages, OnnxLoadsTheInitializers) {
  const fs::path scratch = TestScratch("consumers-onnx");
  const Artifact artifact = WideArtifact(scratch / "a", Consumer::kOnnx);
  WriteForRuntime(ExporterNamed("onnx"), artifact, {}, scratch / "out");
  const auto tensors = LoadedBy("onnx", scratch / "out" / "rotations.onnx");
  if (tensors.empty()) OSCAR_SKIP_WITHOUT_PACKAGE("onnx");
  EXPECT_EQ(tensors.size(), 4U);
  for (int i = 0; i < 2; ++i) {
    const StoredChoice choice = artifact.ReadChoice(i, kHeadlineChoice);
    const std::string name = "model.layers." + std::to_string(i) + ".attn.";
    EXPECT_EQ(tensors.at(name + "R_K"), Digest(Twice(choice.k.rotation)));
    EXPECT_EQ(tensors.at(name + "R_V"), Digest(Twice(choice.v.rotation)));
  }
}

TEST(ConsumerPackages, GgufLoadsTheTensors) {
  const fs::path scratch = TestScratch("consumers-gguf");
  const Artifact artifact = WideArtifact(scratch / "a", Consumer::kLlamacpp);
  WriteForRuntime(ExporterNamed("llamacpp"), artifact, {}, scratch / "out");
  const auto tensors = LoadedBy("gguf", scratch / "out" / "rotations.gguf");
  if (tensors.empty()) OSCAR_SKIP_WITHOUT_PACKAGE("gguf");
  EXPECT_EQ(tensors.size(), 4U);
  for (int i = 0; i < 2; ++i) {
    const StoredChoice choice = artifact.ReadChoice(i, kHeadlineChoice);
    const std::string name = "blk." + std::to_string(i) + ".attn_";
    EXPECT_EQ(tensors.at(name + "k_rot.weight"), Digest(Transposed(choice.k.rotation, 64)));
    EXPECT_EQ(tensors.at(name + "v_rot.weight"), Digest(Transposed(choice.v.rotation, 32)));
  }
}

TEST(ConsumerPackages, GgufLoadsTheKeyMeans) {
  const fs::path scratch = TestScratch("consumers-means");
  const Artifact artifact = WideArtifact(scratch / "a", Consumer::kLlamacpp);
  WriteForRuntime(ExporterNamed("kv-mean-center"), artifact, {}, scratch / "out");
  const auto tensors = LoadedBy("gguf", scratch / "out" / "kv-mean-center-no-rotation.gguf");
  if (tensors.empty()) OSCAR_SKIP_WITHOUT_PACKAGE("gguf");
  EXPECT_EQ(tensors.size(), 2U);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(tensors.at("kv_bar.blk." + std::to_string(i) + ".k"), Digest(artifact.KeyMean(i)));
}

TEST(ConsumerPackages, SafetensorsLoadsScales) {
  const fs::path scratch = TestScratch("consumers-scales");
  const std::vector<SampleRecipe> recipes(4, SampleRecipes()[0]);
  WriteChosenArtifact(scratch / "a", recipes, {.fold = false},
                      [](int i) { return SampleMoments(i, 60, 4, 64, 64); });
  const Artifact artifact = Artifact::Open(scratch / "a");
  WriteForRuntime(ExporterNamed("kv-scales"), artifact, {.checkpoint = TestData("tiny-qwen3")},
                  scratch / "out");
  const auto tensors = LoadedBy("safetensors", scratch / "out" / "model-kvscales.safetensors");
  if (tensors.empty()) OSCAR_SKIP_WITHOUT_PACKAGE("safetensors");
  EXPECT_EQ(tensors.size(), 8U);
  for (const char side : {'k', 'v'}) {
    const std::vector<double> maxima = artifact.AbsMax(2, side);
    const auto scale = static_cast<float>(std::ranges::max(maxima) / 448);
    EXPECT_EQ(tensors.at(std::string("model.layers.2.self_attn.") + side + "_scale"),
              Digest({scale}));
  }
}

TEST(ConsumerPackages, TorchLoadsMoments) {
  const fs::path scratch = TestScratch("consumers-torch");
  const Artifact artifact = WideArtifact(scratch / "a", Consumer::kSglangOct);
  WriteForRuntime(ExporterNamed("upstream-moments"), artifact, {}, scratch / "moments");
  const auto moments = LoadedBy("torch", scratch / "moments" / "oscar_moments_rank0.pt");
  if (moments.empty()) OSCAR_SKIP_WITHOUT_PACKAGE("torch");
  EXPECT_EQ(moments.size(), 8U);
  for (int i = 0; i < 2; ++i) {
    const LayerMoments sums = SampleMoments(i, 60, 4 + static_cast<unsigned>(i), 64, 32);
    EXPECT_EQ(moments.at(std::to_string(i) + ".M_k"),
              Sha256Hex(std::as_bytes(std::span(sums.key))));
    EXPECT_EQ(moments.at(std::to_string(i) + ".k_sum"),
              Sha256Hex(std::as_bytes(std::span(sums.key_sum))));
  }
}

}  // namespace
}  // namespace oscar
