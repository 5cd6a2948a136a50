// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that the exported directory is what SGLang's loader accepts, and that it contains what was
// fitted.
#include "export/formats/sglang.h"

#include <gtest/gtest.h>

#include <cmath>

#include "capture/files/digest.h"
#include "linalg/base/error.h"
#include "linalg/eigh.h"
#include "linalg/rotation.h"
#include "tests/export/formats/torch_python.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

constexpr int64_t kDim = 16, kHeads = 3;

// Returns a covariance that depends on `seed`, so that layers and heads differ.
Matrix Covariance(int seed) {
  Matrix x(kDim, kDim);
  for (int64_t i = 0; i < kDim; ++i) {
    for (int64_t j = 0; j < kDim; ++j) {
      x(i, j) = std::sin(static_cast<double>(1 + i * kDim + j) * (seed + 1.7));
    }
  }
  return x * x.transpose();
}

struct Fitted {
  std::vector<float> rotation;  // row-major
  std::vector<float> eigenvalues;
};

Fitted Fit(int seed) {
  const Eigenbasis basis = SymmetricEigenbasis(Covariance(seed), "test");
  const Matrix r = Compose(basis, Composition::kRHPbr).matrix();
  Fitted fitted;
  for (int64_t i = 0; i < kDim; ++i) {
    for (int64_t j = 0; j < kDim; ++j) fitted.rotation.push_back(static_cast<float>(r(i, j)));
    fitted.eigenvalues.push_back(static_cast<float>(basis.eigenvalues(i)));
  }
  return fitted;
}

SglangSide Side(int seed, bool per_head) {
  const Fitted shared = Fit(seed);
  SglangSide side;
  side.shared = std::make_shared<const FloatTensor>(FloatTensor{{kDim, kDim}, shared.rotation});
  side.shared_eigenvalues =
      std::make_shared<const FloatTensor>(FloatTensor{{kDim}, shared.eigenvalues});
  if (per_head) {
    FloatTensor heads{{kHeads, kDim, kDim}, {}};
    for (int h = 0; h < kHeads; ++h) {
      const Fitted head = Fit(seed + 100 * (h + 1));
      heads.values.insert(heads.values.end(), head.rotation.begin(), head.rotation.end());
    }
    side.per_head = std::make_shared<const FloatTensor>(std::move(heads));
  }
  return side;
}

SglangExport Example(bool per_head) {
  SglangExport rotations;
  for (int i = 0; i < 2; ++i) {
    rotations.layers.push_back({3 + 4 * i, Side(i, per_head), Side(i + 50, per_head)});
  }
  rotations.calibration = Json{{"generation_id", "abc"}, {"tokens", 30000}, {"rope", {{"x", 1.5}}}};
  return rotations;
}

TEST(Sglang, TorchLoadsEveryExportedFile) {
  const auto out = TestScratch("sglang-torch") / "export";
  const SglangExport rotations = Example(true);
  WriteSglang(out, rotations);
  const std::vector<std::string> files = {(out / "k_rotation_qqt_r_h_pbr.pt").string(),
                                          (out / "v_rotation_sst_r_h_pbr.pt").string(),
                                          (out / "perhead/k_rotation_perhead.pt").string(),
                                          (out / "perhead/v_rotation_perhead.pt").string()};
  OSCAR_TORCH_OR_SKIP(output, files[0] + " " + files[1] + " " + files[2] + " " + files[3]);
  const Json seen = Json::parse(output);
  for (size_t f = 0; f < files.size(); ++f) {
    const Json& file = seen.at(files[f]);
    EXPECT_EQ(file["objective"], f % 2 == 0 ? "qqt_r_h_pbr" : "sst_r_h_pbr");
    EXPECT_EQ(file["calibration"], rotations.calibration);
    EXPECT_EQ(file["rotations"].size(), 2u);
    for (const SglangLayer& layer : rotations.layers) {
      const SglangSide& side = f % 2 == 0 ? layer.k : layer.v;
      const FloatTensorPtr& tensor = f < 2 ? side.shared : side.per_head;
      EXPECT_EQ(file["rotations"][std::to_string(layer.layer_id)],
                Sha256Hex(std::as_bytes(std::span(tensor->values))));
    }
  }
}

TEST(Sglang, OurReaderGivesBackThePair) {
  const auto out = TestScratch("sglang-back") / "export";
  const SglangExport rotations = Example(false);
  WriteSglang(out, rotations);
  EXPECT_FALSE(std::filesystem::exists(out / "perhead"));
  const auto files = FindRotationPair(out);
  ASSERT_TRUE(files.has_value());
  const RotationPair pair = OpenRotationPair(files->first, files->second);
  EXPECT_EQ(pair.k.kind, RotationKind::kV1);
  EXPECT_EQ(pair.v.source_grouping, "layer");
  ASSERT_EQ(pair.v.layers.size(), 2u);
  EXPECT_EQ(pair.v.layers[1].layer_id, 7);
  EXPECT_EQ(pair.v.layers[1].rotation->values, rotations.layers[1].v.shared->values);
}

TEST(Sglang, TheValueTargetIsNamedInsideTheFile) {
  const auto out = TestScratch("sglang-target") / "export";
  SglangExport rotations = Example(false);
  rotations.value_target = "attention_output";
  WriteSglang(out, rotations);
  const PtFile file = PtFile::Open(out / "v_rotation_sst_r_h_pbr.pt");
  const auto* top = file.root().If<PtDict>();
  EXPECT_EQ(*top->Find("objective")->If<std::string>(), "attention_output_r_h_pbr");
  EXPECT_EQ(*top->Find("value_target")->If<std::string>(), "attention_output");
}

TEST(Sglang, TwoExportsHaveTheSameBytes) {
  const auto scratch = TestScratch("sglang-same");
  for (const char* name : {"a", "b"}) WriteSglang(scratch / name, Example(true));
  for (const char* file : {"k_rotation_qqt_r_h_pbr.pt", "perhead/v_rotation_perhead.pt"}) {
    EXPECT_EQ(DigestFile(scratch / "a" / file), DigestFile(scratch / "b" / file));
  }
}

TEST(Sglang, NothingIsPublishedWhenAMatrixIsNoRotation) {
  const auto scratch = TestScratch("sglang-bad");
  SglangExport rotations = Example(false);
  FloatTensor bad = *rotations.layers[1].v.shared;
  bad.values[5] += 0.01f;
  rotations.layers[1].v.shared = std::make_shared<const FloatTensor>(bad);
  EXPECT_THROW(WriteSglang(scratch / "export", rotations), NumericalError);
  EXPECT_TRUE(std::filesystem::is_empty(scratch));
}

TEST(Sglang, RefusesExportsWithHoles) {
  const auto scratch = TestScratch("sglang-holes");
  SglangExport some = Example(true);
  some.layers[1].v.per_head = nullptr;
  EXPECT_THROW(WriteSglang(scratch / "a", some), InputError);
  SglangExport none = Example(false);
  none.layers[0].k.shared = nullptr;
  EXPECT_THROW(WriteSglang(scratch / "b", none), InputError);
  EXPECT_THROW(WriteSglang(scratch / "c", SglangExport{}), InputError);
  SglangExport target = Example(false);
  target.value_target = "softmax";
  EXPECT_THROW(WriteSglang(scratch / "d", target), InputError);
}

TEST(Sglang, LaunchTextIsAScriptThatRunsFromAnywhere) {
  const Json calibration = {{"model", {{"id", "Example/Model\n8B"}}}};
  EXPECT_EQ(LaunchModel(calibration), "Example/Model?8B");
  EXPECT_EQ(LaunchModel(Json()), "MODEL");
  EXPECT_EQ(LaunchPath(calibration), "Example/Model?8B");
  EXPECT_EQ(LaunchPath({{"model", {{"id", "qwen"}}}}), "/PATH/TO/qwen");
  const std::string text = SglangServer().launch({}, "out/k.pt", "out/v.pt", "a b");
  const auto here = std::filesystem::current_path();
  EXPECT_TRUE(Says(text, "K_ROTATION_PATH=" + (here / "out/k.pt").string()));
  EXPECT_TRUE(Says(text, "--model-path 'a b' "));
  const auto out = TestScratch("sglang-perhead-launch") / "export";
  WriteSglang(out, Example(true));
  EXPECT_TRUE(Says(ReadText(out / "launch.txt"), "# perhead/ has a rotation for each KV head"));
}

}  // namespace
}  // namespace oscar
