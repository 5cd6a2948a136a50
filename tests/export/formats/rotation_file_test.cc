// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that every schema is read into one struct, and which files are refused besides the bundled
// hostile ones.
#include "export/formats/rotation_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "export/formats/pt/pt_writer.h"
#include "export/formats/rotation_checks.h"
#include "export/formats/rotation_pair.h"
#include "linalg/base/error.h"
#include "tests/export/formats/float_tensor.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

// Returns rotations by `angle`, with columns scaled by `stretch` and 1 / `stretch`. The shape is
// [count, 2, 2], or [2, 2] if `count` is 0.
FloatTensorPtr Turn(double angle, int64_t count = 0, double stretch = 1) {
  std::vector<float> values;
  for (int64_t i = 0; i < std::max<int64_t>(count, 1); ++i) {
    const double c = std::cos(angle), s = std::sin(angle);
    for (const double v : {c * stretch, s / stretch, -s * stretch, c / stretch}) {
      values.push_back(static_cast<float>(v));
    }
  }
  return count == 0 ? MakeTensor({2, 2}, values) : MakeTensor({count, 2, 2}, values);
}

PtOutDict Layer(int64_t id, const FloatTensorPtr& rotation) {
  return {{PtKey("layer_id"), id}, {PtKey("rotation"), rotation}};
}

PtOutDict File(PtOut version, const char* objective, PtOutDict layers) {
  return {{PtKey("format_version"), std::move(version)},
          {PtKey("objective"), objective},
          {PtKey("layers"), std::move(layers)}};
}

class RotationFileTest : public ::testing::Test {
 protected:
  RotationFile Read(const PtOut& value, const std::string& name = "x.pt") {
    WritePt(scratch_ / name, value, "x");
    return OpenRotationFile(scratch_ / name);
  }
  std::filesystem::path scratch_ = TestScratch("rotation-file");
};

TEST(ParseLayerId, TakesCanonicalDecimalsOnly) {
  EXPECT_EQ(ParseLayerId("0"), 0);
  EXPECT_EQ(ParseLayerId("2147483647"), 2147483647);
  for (const char* text : {"", "-1", "00", "07", " 0", "0 ", "+1", "1.0", "0x1", "2147483648",
                           "99999999999999999999", "layer_0"}) {
    EXPECT_FALSE(ParseLayerId(text).has_value()) << text;
  }
}

TEST_F(RotationFileTest, KindsAreToldByContent) {
  const PtOutDict layers = {{int64_t{5}, Layer(5, Turn(0.3))}};
  EXPECT_EQ(Read(File(int64_t{1}, "qqt_r_h_pbr", layers)).kind, RotationKind::kV1);
  EXPECT_EQ(Read(File("identity-v1", "identity-k", layers)).kind, RotationKind::kIdentity);
  EXPECT_EQ(Read(PtOutDict{{PtKey("layers"), layers}}).kind, RotationKind::kLayers);
  EXPECT_EQ(Read(PtOutDict{{PtKey("4"), Turn(0.1)}}).kind, RotationKind::kFlat);
  EXPECT_EQ(Read(Turn(0.1, 3)).kind, RotationKind::kStacked);
  EXPECT_EQ(Read(Turn(0.1)).kind, RotationKind::kMlaLayer);
  const RotationFile mla = Read(PtOutDict{{PtKey("rotation"), Turn(0.1)}}, "layer_12.pt");
  EXPECT_EQ(mla.kind, RotationKind::kMlaLayer);
  EXPECT_EQ(mla.layers[0].layer_id, 12);
  EXPECT_EQ(Read(Turn(0.1), "layer_x.pt").layers[0].layer_id, 0);
}

TEST_F(RotationFileTest, StackedTensorsBecomeLayersInOrder) {
  const RotationFile file = Read(Turn(0.25, 3));
  ASSERT_EQ(file.layers.size(), 3u);
  EXPECT_EQ(file.layers[2].layer_id, 2);
  EXPECT_EQ(file.layers[2].rotation->values, Turn(0.25)->values);
  EXPECT_LT(file.layers[2].orthogonality, 1e-7);
}

TEST_F(RotationFileTest, UnknownContentsAndVersionsAreRefused) {
  EXPECT_THROW(Read(PtOutDict{}), InputError);
  EXPECT_THROW(Read(int64_t{1}), InputError);
  EXPECT_THROW(Read(PtOutDict{{PtKey("state"), Turn(0.1)}}), InputError);
  EXPECT_THROW(Read(MakeTensor({4}, {1, 0, 0, 1})), InputError);
  const PtOutDict layers = {{int64_t{0}, Layer(0, Turn(0.3))}};
  for (const PtOut& version : {PtOut(int64_t{0}), PtOut(int64_t{4}), PtOut("identity-v2"),
                               PtOut(true), PtOut(1.0), PtOut(PtNone{})}) {
    EXPECT_THROW(Read(File(version, "qqt", layers)), InputError);
  }
}

TEST_F(RotationFileTest, OneIdUnderTwoTypesIsOneLayerTwice) {
  EXPECT_THROW(Read(PtOutDict{{int64_t{4}, Turn(0.1)}, {PtKey("4"), Turn(0.2)}}), InputError);
}

TEST_F(RotationFileTest, OrthogonalityIsHeldToTheFloat32Limit) {
  EXPECT_NO_THROW(Read(Turn(0.3, 0, 1 + 5e-6)));  // max|R Rt - I| is about 8e-6
  EXPECT_THROW(Read(Turn(0.3, 0, 1 + 8e-6)), NumericalError);
}

TEST_F(RotationFileTest, AStretchNeedsItsInverse) {
  const FloatTensorPtr stretched = Turn(0.3, 0, 2), inverse = Turn(0.3, 0, 0.5);
  PtOutDict entry = Layer(0, stretched);
  const PtOutDict transform = {{PtKey("orthogonal"), false}};
  const auto file = [&](const PtOutDict& layer) {
    return PtOutDict{{PtKey("format_version"), int64_t{3}},
                     {PtKey("transform"), transform},
                     {PtKey("layers"), PtOutDict{{int64_t{0}, layer}}}};
  };
  EXPECT_THROW(Read(file(entry)), InputError);
  entry.emplace_back("q_rotation", inverse);
  const RotationFile read = Read(file(entry));
  EXPECT_GT(read.layers[0].orthogonality, 0.5);
  EXPECT_LT(read.layers[0].q_inverse_error.value(), 1e-6);
  entry.back().second = stretched;
  EXPECT_THROW(Read(file(entry)), NumericalError);
}

// `scale` is max of |R| |Q|^T, to which residuals are compared. Here R is [[1, s], [0, 1]], and Q
// is its inverse transposed.
TEST(InverseError, KnowsTheSizeOfWhatIsSummed) {
  double scale = 0;
  EXPECT_EQ(InverseError({1, 2, false}, {1, 100, 0, 1}, {1, 0, -100, 1}, &scale), 0);
  EXPECT_EQ(scale, 200);
}

// Returns moments of 2 KV heads: the mean of q^T q and sums of keys (dimension 3), and values
// (dimension 2).
PtOutDict Moments() {
  return {{PtKey("count"), int64_t{5}},
          {PtKey("q_scaling"), 0.5},
          {PtKey("M_q"), MakeTensor({2, 3, 3}, {4, 1, 2, 1, 5, 3, 2, 3, 6,  //
                                                9, .1F, .2F, .1F, 8, .3F, .2F, .3F, 7})},
          {PtKey("k_sum"), MakeTensor({2, 3}, {1, 2, 3, 4, 5, 6})},
          {PtKey("M_k"), MakeTensor({2, 3, 3}, {40, 10, 20, 10, 50, 30, 20, 30, 60,  //
                                                90, 1, 2, 1, 80, 3, 2, 3, 70})},
          {PtKey("S_v"), MakeTensor({2, 2, 2}, {2, .5F, .5F, 3, 4, .25F, .25F, 5})}};
}

TEST_F(RotationFileTest, MomentsAreReadAsTheyAre) {
  const auto file = [](const PtOutDict& layer, int64_t version = 2) {
    return PtOutDict{{PtKey("format_version"), version},
                     {PtKey("tokens"), int64_t{5}},
                     {PtKey("layers"), PtOutDict{{int64_t{7}, layer}}}};
  };
  const RotationFile read = Read(file(Moments()));
  EXPECT_EQ(read.kind, RotationKind::kMoments);
  EXPECT_EQ(read.format_version, 2);
  EXPECT_EQ(read.calibration.at("tokens"), 5);
  const MomentLayer& layer = read.moments.at(0);
  EXPECT_EQ(layer.layer_id, 7);
  EXPECT_EQ(layer.num_kv_heads, 2);
  EXPECT_EQ(layer.head_dim, 3);
  EXPECT_EQ(layer.v_head_dim, 2);
  EXPECT_EQ(layer.count, 5);
  EXPECT_EQ(layer.q_scaling, 0.5);
  EXPECT_EQ(layer.m_q[1], 1);
  EXPECT_EQ(layer.m_k[9], 90);
  EXPECT_EQ(layer.k_sum, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(layer.s_v[7], 5);

  const auto refused = [&](const char* key, const PtOut& value) {
    PtOutDict changed = Moments();
    for (auto& [name, field] : changed)
      if (PtKeyText(name) == key) field = value;
    return !ErrorOf<Error>([&] { Read(file(changed)); }).empty();
  };
  EXPECT_FALSE(refused("q_scaling", PtNone{}));
  EXPECT_TRUE(refused("q_scaling", int64_t{1}));
  EXPECT_TRUE(refused("count", int64_t{0}));
  EXPECT_TRUE(refused("k_sum", MakeTensor({2, 4}, std::vector<float>(8, 1))));
  EXPECT_TRUE(refused("k_sum", MakeTensor({6}, std::vector<float>(6, 1))));
  EXPECT_TRUE(refused("M_q", MakeTensor({2, 2, 3}, std::vector<float>(12, 1))));
  EXPECT_TRUE(refused("S_v", MakeTensor({2, 2, 1}, std::vector<float>(4, 1))));
  EXPECT_TRUE(refused("S_v", MakeTensor({2, 2, 2}, {2, 1, 1, 3, 4, .25F, .26F, 5})));
  EXPECT_TRUE(refused("S_v", MakeTensor({2, 2, 2}, {2, .26F, .25F, 3, 4, 1, 1, 5})));
  EXPECT_THROW(Read(file(Moments(), 3)), InputError);
}

TEST_F(RotationFileTest, ManyLayersOfOneTensorAreMeasuredOnce) {
  const int64_t d = 256;
  std::vector<float> eye(static_cast<size_t>(d * d), 0);
  for (int64_t i = 0; i < d; ++i) eye[static_cast<size_t>(i * (d + 1))] = 1;
  const FloatTensorPtr shared = MakeTensor({d, d}, eye);
  PtOutDict layers;
  for (int64_t i = 0; i < 4096; ++i) layers.emplace_back(i, shared);
  EXPECT_EQ(Read(layers).layers.size(), 4096u);  // 137 GFLOP if measured one by one
  layers.emplace_back(int64_t{4096}, shared);
  EXPECT_THROW(Read(layers), InputError);
}

class PairTest : public RotationFileTest {
 protected:
  void Open(const PtOut& k, const PtOut& v) {
    WritePt(scratch_ / "k_rotation.pt", k, "k");
    WritePt(scratch_ / "v_rotation.pt", v, "v");
    const auto files = FindRotationPair(scratch_);
    OpenRotationPair(files->first, files->second);
  }
  static PtOutDict Layers(std::vector<std::pair<int64_t, FloatTensorPtr>> layers) {
    PtOutDict out;
    for (const auto& [id, rotation] : layers) out.emplace_back(id, Layer(id, rotation));
    return out;
  }
};

TEST_F(PairTest, SidesMayNotBeSwapped) {
  const PtOutDict layers = Layers({{0, Turn(0.1)}});
  const auto file = [&](const char* objective) { return File(int64_t{1}, objective, layers); };
  EXPECT_NO_THROW(Open(file("qqt_r_h_pbr"), file("sst_r_h_pbr")));
  EXPECT_NO_THROW(Open(file("qqt_r_h_pbr"), file("attention_output_r_h_pbr")));
  EXPECT_NO_THROW(Open(file("hadamard"), file("hadamard")));
  EXPECT_THROW(Open(file("sst_r_h_pbr"), file("qqt_r_h_pbr")), InputError);
  EXPECT_THROW(Open(file("hadamard"), file("identity-k")), InputError);
  EXPECT_THROW(Open(file("oscar2_v_pre_wo"), file("oscar2_v_pre_wo")), InputError);
}

TEST_F(PairTest, FieldsOfOneSideAreNotInTheOther) {
  const auto file = [&](const char* key, const FloatTensorPtr& value) {
    PtOutDict layer = Layer(0, Turn(0.1));
    if (value) layer.emplace_back(PtKey(key), value);
    return PtOutDict{{PtKey("format_version"), int64_t{3}},
                     {PtKey("layers"), PtOutDict{{int64_t{0}, layer}}}};
  };
  const PtOut plain = file("", nullptr), mean = file("k_mean", MakeTensor({2}, {1, 2})),
              query = file("q_rotation", Turn(0.1)), output = file("o_rotation", Turn(0.1));
  EXPECT_NO_THROW(Open(mean, output));
  EXPECT_NO_THROW(Open(query, plain));
  EXPECT_THROW(Open(plain, mean), InputError);
  EXPECT_THROW(Open(plain, query), InputError);
  EXPECT_THROW(Open(output, plain), InputError);
}

TEST_F(PairTest, OrderMayDifferButLayersMayNot) {
  const auto file = [&](PtOutDict layers) { return File(int64_t{1}, "hadamard", layers); };
  const PtOut both = file(Layers({{3, Turn(0.1)}, {7, Turn(0.2)}}));
  EXPECT_NO_THROW(Open(both, file(Layers({{7, Turn(0.1)}, {3, Turn(0.2)}}))));
  EXPECT_THROW(Open(both, file(Layers({{3, Turn(0.1)}}))), InputError);
  EXPECT_THROW(Open(file(Layers({{3, Turn(0.1)}})), both), InputError);
}

TEST_F(PairTest, HeadCountsAgreeAndDimensionsMapOneToOne) {
  const FloatTensorPtr four = MakeTensor({4, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
  const auto file = [&](PtOutDict layers) { return File(int64_t{2}, "hadamard", layers); };
  EXPECT_THROW(Open(file(Layers({{0, Turn(0.1, 2)}})), file(Layers({{0, Turn(0.1, 3)}}))),
               InputError);
  const PtOut same = file(Layers({{0, Turn(0.1)}, {1, Turn(0.1)}}));
  const PtOut mixed = file(Layers({{0, Turn(0.1)}, {1, four}}));
  EXPECT_NO_THROW(Open(mixed, mixed));
  EXPECT_THROW(Open(same, mixed), InputError);
  EXPECT_THROW(Open(mixed, same), InputError);
}

TEST_F(PairTest, AFolderOfSeveralPairsIsAmbiguous) {
  Open(Turn(0.1), Turn(0.1));
  WritePt(scratch_ / "k_rotation_perhead.pt", Turn(0.1), "k");
  EXPECT_THROW(FindRotationPair(scratch_), InputError);
}

}  // namespace
}  // namespace oscar
