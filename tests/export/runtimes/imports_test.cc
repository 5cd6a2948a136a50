// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Imports published files and exports them again with every writer. Every value must equal the
// file's, bit for bit. The readers of each format read the files.
#include "export/runtimes/imports.h"

#include <gtest/gtest.h>

#include "export/artifact/artifact_reader.h"
#include "export/formats/given_rotations.h"
#include "export/formats/pt/pt_writer.h"
#include "export/formats/rotation_pair.h"
#include "export/formats/sglang_pair.h"
#include "export/runtimes/exporter.h"
#include "linalg/base/error.h"
#include "tests/export/runtimes/exporter_named.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

Artifact Imported(const std::string& files, const fs::path& scratch) {
  fs::remove_all(scratch / "a");
  ImportPublished(files, {{"name", "oscar"}}, scratch / "a");
  return Artifact::OpenImported(scratch / "a");
}

void Export(std::string_view to, const Artifact& artifact, const fs::path& output) {
  fs::remove_all(output);
  WriteForRuntime(ExporterNamed(to), artifact, {}, output);
}

void ExpectValues(const FloatTensorPtr& found, const FloatTensorPtr& given, const char* what) {
  ASSERT_EQ(found != nullptr, given != nullptr) << what;
  if (given) {
    EXPECT_EQ(found->values, given->values) << what;
  }
}

void ExpectSameLayers(const std::optional<RotationFile>& found,
                      const std::optional<RotationFile>& given) {
  ASSERT_EQ(found.has_value(), given.has_value());
  if (!given) return;
  ASSERT_EQ(found->layers.size(), given->layers.size());
  for (const RotationLayer& layer : given->layers) {
    const auto same = std::ranges::find(found->layers, layer.layer_id, &RotationLayer::layer_id);
    ASSERT_NE(same, found->layers.end()) << layer.layer_id;
    ExpectValues(same->rotation, layer.rotation, "rotation");
    ExpectValues(same->q_rotation, layer.q_rotation, "q_rotation");
    ExpectValues(same->o_rotation, layer.o_rotation, "o_rotation");
    ExpectValues(same->k_mean ? same->k_mean : same->mean, layer.k_mean ? layer.k_mean : layer.mean,
                 "mean");
  }
}

// Imports `files`, exports them as plain safetensors, and expects the same layers.
void ExpectThrough(const std::string& files, const std::string& name) {
  SCOPED_TRACE(files);
  const fs::path scratch = TestScratch("imports-" + name);
  const GivenRotations given = ReadGivenRotations(files);
  const Artifact artifact = Imported(files, scratch);
  EXPECT_EQ(artifact.manifest().at("imported").at("verified"), false);
  Export("safetensors", artifact, scratch / "out");
  const GivenRotations out =
      ReadGivenRotations((scratch / "out" / "rotations.safetensors").string());
  ExpectSameLayers(out.k, given.k);
  if (fs::is_directory(files) && IsMlaFolder(files)) return;  // latents have no V
  ExpectSameLayers(out.v, given.v);
}

// Does the same for a rotation pair, exported to the files of a server.
void ExpectPairThrough(const fs::path& directory, std::string_view to, const std::string& name) {
  SCOPED_TRACE(directory.string());
  const fs::path scratch = TestScratch("imports-pair-" + name);
  Export(to, Imported(directory.string(), scratch), scratch / "out");
  const auto given = FindRotationPair(directory).value(),
             out = FindRotationPair(scratch / "out").value();
  const RotationPair a = OpenRotationPair(given.first, given.second),
                     b = OpenRotationPair(out.first, out.second);
  ExpectSameLayers(b.k, a.k);
  ExpectSameLayers(b.v, a.v);
  const auto eigenvalues = [](const RotationFile& file) {
    std::vector<float> all;
    for (const RotationLayer& layer : file.layers)
      if (layer.eigenvalues)
        all.insert(all.end(), layer.eigenvalues->values.begin(), layer.eigenvalues->values.end());
    return all;
  };
  EXPECT_EQ(eigenvalues(b.k), eigenvalues(a.k));
  EXPECT_EQ(eigenvalues(b.v), eigenvalues(a.v));
}

void ExpectMomentsThrough(const fs::path& file) {
  const fs::path scratch = TestScratch("imports-moments");
  ImportPublished(file.string(), {{"name", "oscar"}}, scratch / "a");
  const Artifact artifact = Artifact::Open(scratch / "a");
  Export("upstream-moments", artifact, scratch / "out");
  const RotationFile given = OpenRotationFile(file),
                     out = OpenRotationFile(scratch / "out" / "oscar_moments_rank0.pt");
  ASSERT_EQ(out.moments.size(), given.moments.size());
  for (size_t i = 0; i < out.moments.size(); ++i) {
    EXPECT_EQ(out.moments[i].m_q, given.moments[i].m_q);
    EXPECT_EQ(out.moments[i].m_k, given.moments[i].m_k);
    EXPECT_EQ(out.moments[i].k_sum, given.moments[i].k_sum);
    EXPECT_EQ(out.moments[i].s_v, given.moments[i].s_v);
    EXPECT_EQ(out.moments[i].count, given.moments[i].count);
  }
}

TEST(Imports, OfTheBundledFilesComeOutAsTheyWentIn) {
  const fs::path files = TestData("upstream") / "synthetic";
  ExpectThrough((files / "v3-oscar2-center").string(), "center");
  ExpectThrough((files / "v2-perhead-k24-v16").string(), "v2");
  ExpectThrough((files / "vllm-flat-dict" / "k_rotation.pt").string() + ":none", "flat");
  ExpectThrough((files / "vllm-stacked" / "k_rotation.pt").string() + ":none", "stacked");
  ExpectPairThrough(files / "v1-startup-calibrator", "sglang", "v1");
  ExpectPairThrough(files / "v1-startup-calibrator", "vllm", "v1-vllm");
  ExpectPairThrough(files / "v3-oscar2-center", "sglang-oct", "v3");
}

TEST(Imports, OfEveryPublishedFileComeOutAsTheyWentIn) {
  OSCAR_PACK_OR_SKIP(pack, "upstream");
  for (const char* root : {".", "synthetic"}) {
    for (const auto& entry : fs::directory_iterator(pack / root)) {
      const std::string name = entry.path().filename().string();
      if (name == "hostile" || name == "synthetic" || !entry.is_directory()) continue;
      if (name == "optr-k-mean") continue;  // format no longer supported
      if (name == "moments") {
        ExpectMomentsThrough(entry.path() / "oscar_moments_rank0.pt");
      } else if (name.starts_with("vllm")) {
        ExpectThrough((entry.path() / "k_rotation.pt").string() + ":none", name);
      } else {
        ExpectThrough(entry.path().string(), name);
        if (!name.starts_with("mla")) ExpectPairThrough(entry.path(), "sglang-oct", name);
      }
    }
  }
}

TEST(Imports, OfLatentsAreADirectoryAgain) {
  OSCAR_PACK_OR_SKIP(pack, "upstream");
  for (const char* name : {"mla-bare", "mla-joint"}) {
    const fs::path scratch = TestScratch("imports-latents"), given = pack / "synthetic" / name;
    Export("sglang-oct", Imported(given.string(), scratch), scratch / "out");
    ExpectSameLayers(OpenMlaFolder(scratch / "out"), OpenMlaFolder(given));
  }
}

TEST(Imports, AreNoArtifactThatOthersTake) {
  const fs::path scratch = TestScratch("imports-strict");
  Imported((TestData("upstream") / "synthetic" / "v3-oscar2-center").string(), scratch);
  EXPECT_THROW(Artifact::Open(scratch / "a"), InputError);
}

TEST(Imports, SayWhatARuntimeCannotCarry) {
  const fs::path files = TestData("upstream") / "synthetic", scratch = TestScratch("imports-lost");
  const auto refusal = [&](const std::string& from, std::string_view to) -> std::string {
    const Artifact artifact = Imported(from, scratch);
    try {
      Export(to, artifact, scratch / "out");
    } catch (const InputError& error) {
      EXPECT_FALSE(fs::exists(scratch / "out"));
      return error.what();
    }
    return "";
  };
  EXPECT_TRUE(Says(refusal((files / "v3-oscar2-center").string(), "sglang"), "key means"));
  const std::string keys = (files / "vllm-flat-dict" / "k_rotation.pt").string() + ":none";
  EXPECT_TRUE(Says(refusal(keys, "vllm"), "contain no rotations for values"));
  // A file with one matrix for all KV heads does not contain the number of heads.
  EXPECT_TRUE(Says(refusal((files / "v1-startup-calibrator").string(), "onnx"), "KV heads"));
  const auto not_imported = [&](const fs::path& file) -> std::string {
    return ErrorOf<InputError>([&] { Imported(file.string(), scratch); });
  };
  EXPECT_TRUE(Says(not_imported(files / "vllm-flat-dict" / "k_rotation.pt"),
                   "does not say whether it rotates keys or values"));
  WritePt(scratch / "layer_0.pt",
          std::make_shared<const FloatTensor>(FloatTensor{{2, 2}, {0, 1, -1, 0}}), "layer_0");
  EXPECT_TRUE(Says(not_imported(scratch / "layer_0.pt"), "one layer of a latent cache"));
  EXPECT_THROW(Imported(TestData("tiny-qwen3").string() + "/config.json", scratch), InputError);
}

}  // namespace
}  // namespace oscar
