// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the file that PrismML's loader reads (common/kv-mean-center.h): one tensor per layer,
// channels fastest, in the basis that kv_mean_center.k_rot names. The Hadamard matrix is built by
// doubling, as in ggml_gen_hadamard. Keys are reordered as in the converter, by reshape and
// swapaxes.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "calib/job/refit_layer.h"
#include "capture/files/digest.h"
#include "export/artifact/artifact_writer.h"
#include "export/runtimes/exporter.h"
#include "linalg/base/error.h"
#include "tests/calib/moments/sample_moments.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/export/runtimes/exporter_named.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Writes an artifact of layers 3 and 11 with 2 KV heads of dimension `d`.
Artifact Of(const fs::path& path, int64_t d, const std::string& model_type,
            bool with_means = true) {
  ArtifactInfo info = SampleInfo();
  info.model["model_type"] = model_type;
  WriteArtifact(path, info, {2, [&](size_t i) {
                               LayerMoments moments = SampleMoments(
                                   i == 0 ? 3 : 11, 50, 1 + static_cast<unsigned>(i), d, 4);
                               if (!with_means) moments.key_sum.clear();
                               return RefitLayer(std::move(moments), {}, {});
                             }});
  return Artifact::Open(path);
}

std::vector<float> Means(size_t i, int64_t d) {
  const LayerMoments moments = SampleMoments(i == 0 ? 3 : 11, 50, 1 + static_cast<unsigned>(i), d);
  std::vector<float> means;
  for (const double sum : moments.key_sum) means.push_back(static_cast<float>(sum / 50));
  return means;
}

// Returns row [n] times the orthonormal Hadamard matrix of order n, built by doubling.
std::vector<double> TimesHadamard(const std::vector<float>& row) {
  const size_t n = row.size();
  std::vector<double> h(n * n);
  h[0] = 1 / std::sqrt(static_cast<double>(n));
  for (size_t s = 1; s < n; s *= 2)
    for (size_t i = 0; i < s; ++i)
      for (size_t j = 0; j < s; ++j) {
        h[(i + s) * n + j] = h[i * n + j + s] = h[i * n + j];
        h[(i + s) * n + j + s] = -h[i * n + j];
      }
  std::vector<double> result(n);
  for (size_t j = 0; j < n; ++j)
    for (size_t k = 0; k < n; ++k) result[j] += static_cast<double>(row[k]) * h[k * n + j];
  return result;
}

bool Rotated(const ReadGguf& file) {
  return ReadGguf::As<uint8_t>(file.entries.at("kv_mean_center.k_rot")) != 0;
}

TEST(MeanCenterFiles, HoldTheMeansInBothBases) {
  const fs::path scratch = TestScratch("mean-center");
  const Artifact artifact = Of(scratch / "a", 64, "qwen3");
  WriteForRuntime(ExporterNamed("kv-mean-center"), artifact, {}, scratch / "out");
  const ReadGguf plain(ReadText(scratch / "out" / "kv-mean-center-no-rotation.gguf")),
      turned(ReadText(scratch / "out" / "kv-mean-center.gguf"));
  EXPECT_FALSE(Rotated(plain));
  EXPECT_TRUE(Rotated(turned));
  for (const ReadGguf* file : {&plain, &turned}) {
    EXPECT_EQ(file->entries.at("general.type"), "kv-mean-center");
    EXPECT_EQ(ReadGguf::As<uint32_t>(file->entries.at("kv_mean_center.schema_version")), 1U);
    EXPECT_EQ(file->entries.count("kv_mean_center.model_sha256"), 0U);
    EXPECT_EQ(file->entries.at("oscar.artifact_sha256"), artifact.identity());
    EXPECT_EQ(file->tensors.size(), 2U);
  }
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = i == 0 ? "kv_bar.blk.3.k" : "kv_bar.blk.11.k";
    const std::vector<float> means = Means(i, 64);
    EXPECT_EQ(plain.Of(name).dims, (std::vector<uint64_t>{2 * 64}));
    EXPECT_EQ(plain.Of(name).Floats(plain), means);
    const std::vector<float> stored = turned.Of(name).Floats(turned);
    for (size_t head = 0; head < 2; ++head) {
      const auto begin = means.begin() + static_cast<ptrdiff_t>(64 * head);
      const std::vector<double> expected = TimesHadamard({begin, begin + 64});
      for (size_t c = 0; c < 64; ++c) EXPECT_NEAR(stored[64 * head + c], expected[c], 1e-5);
    }
  }
  const std::string launch = ReadText(scratch / "out" / "launch.txt");
  for (const char* said : {"-ctk q4_0 ", "/out/kv-mean-center.gguf\n", "-m MODEL.gguf ",
                           "LLAMA_ATTN_ROT_DISABLE=1, use kv-mean-center-no-rotation.gguf",
                           "no rotations, no clip ratios, no windows"})
    EXPECT_TRUE(Says(launch, said));
}

// llama.cpp rotates only heads whose dimension is a multiple of 64, so not heads of 96.
TEST(MeanCenterFiles, HaveOneBasisWhereTheCacheIsNotTurned) {
  const fs::path scratch = TestScratch("mean-center-96");
  WriteForRuntime(ExporterNamed("kv-mean-center"), Of(scratch / "a", 96, "phi3"), {},
                  scratch / "out");
  EXPECT_FALSE(fs::exists(scratch / "out" / "kv-mean-center.gguf"));
  EXPECT_TRUE(Says(ReadText(scratch / "out" / "launch.txt"), "LLAMA_ATTN_ROT_DISABLE=1 \\\n"));
}

// LlamaModel.permute reorders by weights.reshape(n_head, 2, d / 2, ...).swapaxes(1, 2).
TEST(MeanCenterFiles, FollowTheConvertersOrderOfALlama) {
  const fs::path scratch = TestScratch("mean-center-llama");
  WriteForRuntime(ExporterNamed("kv-mean-center"), Of(scratch / "a", 8, "llama"), {},
                  scratch / "out");
  const ReadGguf file(ReadText(scratch / "out" / "kv-mean-center-no-rotation.gguf"));
  const std::vector<float> means = Means(0, 8), stored = file.Of("kv_bar.blk.3.k").Floats(file);
  std::vector<float> swapped;
  for (size_t head = 0; head < 2; ++head)
    for (size_t pair = 0; pair < 4; ++pair)
      for (size_t half = 0; half < 2; ++half) swapped.push_back(means[head * 8 + half * 4 + pair]);
  EXPECT_EQ(stored, swapped);
}

TEST(MeanCenterFiles, NameTheModelTheyAreOf) {
  const fs::path scratch = TestScratch("mean-center-model");
  const Artifact artifact = Of(scratch / "a", 64, "qwen3");
  const auto write = [&](uint32_t blocks) {
    RawGguf model;
    model.entries = {
        RawEntry("general.architecture", "qwen3"), RawEntry("qwen3.block_count", blocks),
        RawEntry("qwen3.attention.key_length", 64), RawEntry("qwen3.attention.value_length", 4)};
    fs::remove(scratch / "m.gguf");
    std::ofstream(scratch / "m.gguf", std::ios::binary) << model.Bytes();
    fs::remove_all(scratch / "out");
    WriteForRuntime(ExporterNamed("kv-mean-center"), artifact, {.model_gguf = scratch / "m.gguf"},
                    scratch / "out");
  };
  write(12);
  const ReadGguf file(ReadText(scratch / "out" / "kv-mean-center.gguf"));
  EXPECT_EQ(file.entries.at("kv_mean_center.model_sha256"), DigestFile(scratch / "m.gguf").sha256);
  EXPECT_THROW(write(11), InputError);  // layer 11 needs 12 blocks
  EXPECT_FALSE(fs::exists(scratch / "out"));
}

TEST(MeanCenterFiles, AreRefusedWithoutMeans) {
  const fs::path scratch = TestScratch("mean-center-none");
  const Artifact artifact = Of(scratch / "a", 64, "qwen3", false);
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] {
                     WriteForRuntime(ExporterNamed("kv-mean-center"), artifact, {},
                                     scratch / "out");
                   }),
                   "layer 3 has no key means"));
  EXPECT_FALSE(fs::exists(scratch / "out"));
}

}  // namespace
}  // namespace oscar
