// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that formats are recognized by content, that the text agrees with the JSON, and that other
// files are refused.
#include "export/formats/inspect.h"

#include <gtest/gtest.h>

#include <fstream>

#include "capture/checkpoint/safetensors.h"
#include "export/formats/pt/pt_writer.h"
#include "linalg/base/error.h"
#include "tests/export/formats/float_tensor.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

void WriteSafetensors(const std::filesystem::path& path) {
  SafetensorsWriter writer(path, {{"a", DType::kBF16, {2, 3}}, {"b", DType::kF32, {}}});
  const std::vector<std::byte> data(12);
  writer.Write("a", data);
  writer.Write("b", std::span(data).subspan(0, 4));
  writer.Commit();
}

TEST(Inspect, SafetensorsListNameDtypeAndShape) {
  const auto path = TestScratch("inspect-st") / "m.safetensors";
  WriteSafetensors(path);
  const Json report = InspectFile(path);
  EXPECT_EQ(report["format"], "safetensors");
  EXPECT_EQ(report["tensors"]["a"]["dtype"], "BF16");
  EXPECT_EQ(report["tensors"]["a"]["shape"], Json({2, 3}));
  EXPECT_EQ(report["tensors"]["b"]["shape"], Json::array());
  const std::string text = InspectText(report);
  EXPECT_TRUE(Says(text, "BF16   [2, 3]"));
}

TEST(Inspect, SafetensorsOfEveryElementTypeAreListed) {
  const auto path = TestScratch("inspect-types") / "m.safetensors";
  const std::pair<const char*, uint64_t> types[] = {
      {"BOOL", 8},        {"U8", 8},         {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},
      {"F8_E8M0", 8},     {"I16", 16},       {"U16", 16}, {"F16", 16},    {"BF16", 16},
      {"I32", 32},        {"U32", 32},       {"F32", 32}, {"I64", 64},    {"U64", 64},
      {"F64", 64},        {"C64", 64},       {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6},
      {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}};
  std::string header = "{";
  uint64_t end = 0;
  for (const auto& [type, bits] : types) {
    const uint64_t begin = end;
    end += bits;  // bytes of 8 elements
    header += (header.size() > 1 ? ",\"" : "\"") + std::string(type) + R"(":{"dtype":")" + type +
              R"(","shape":[2,4],"data_offsets":[)" + std::to_string(begin) + "," +
              std::to_string(end) + "]}";
  }
  header += "}";
  std::ofstream file(path, std::ios::binary);
  const uint64_t length = header.size();
  file.write(reinterpret_cast<const char*>(&length), sizeof(length));
  file << header << std::string(end, '\0');
  file.close();
  const Json tensors = InspectFile(path).at("tensors");
  for (const auto& [type, bits] : types) {
    ASSERT_TRUE(tensors.contains(type)) << type;
    EXPECT_EQ(tensors.at(type).at("dtype"), type);
    EXPECT_EQ(tensors.at(type).at("bytes"), bits) << type;
  }
}

TEST(Inspect, ContentCountsAndAContradictingNameIsRefused) {
  const auto scratch = TestScratch("inspect-names");
  WriteSafetensors(scratch / "weights.bin");
  EXPECT_EQ(InspectFile(scratch / "weights.bin")["format"], "safetensors");
  std::filesystem::copy(scratch / "weights.bin", scratch / "weights.pt");
  EXPECT_THROW(InspectFile(scratch / "weights.pt"), InputError);
  const auto pt = TestData("upstream/hostile/control_valid.pt");
  std::filesystem::copy(pt, scratch / "rotation.bin");
  EXPECT_EQ(InspectFile(scratch / "rotation.bin")["kind"], "v1");
  std::filesystem::copy(pt, scratch / "rotation.safetensors");
  EXPECT_THROW(InspectFile(scratch / "rotation.safetensors"), InputError);
}

TEST(Inspect, AModelDirectoryIsReadThroughItsWeights) {
  const auto scratch = TestScratch("inspect-model");
  WriteSafetensors(scratch / "model.safetensors");
  const Json report = InspectFile(scratch);
  EXPECT_EQ(report["format"], "checkpoint");
  EXPECT_EQ(report["files"], Json({"model.safetensors"}));
  EXPECT_EQ(report["tensors"].size(), 2u);
}

TEST(Inspect, TextOfARotationFileShowsLayersAndMeasures) {
  const std::string text =
      InspectText(InspectFile(TestData("upstream/synthetic/v1-startup-calibrator")));
  for (const char* part :
       {"K and V from the same calibration", "kind v1, 3 layers", "layer 11",
        "objective: \"sst_r_h_pbr\"", "max|R Rt - I|", "sha256 7bdfd6205a828ff9"}) {
    EXPECT_TRUE(Says(text, part));
  }
}

TEST(Inspect, OnlyRotationsAreMeasuredAsRotations) {
  const auto path = TestScratch("inspect-spare") / "layer_0.pt";
  WritePt(path,
          PtOutDict{{PtKey("rotation"), MakeTensor({2, 2}, {0, 1, -1, 0})},
                    {PtKey("spare_rotation"), MakeTensor({2, 3}, {1, 2, 3, 4, 5, 6})}},
          "x");
  const Json entry = InspectFile(path).at("entry");
  EXPECT_EQ(entry.at("rotation").at("max_abs_RRt_minus_I"), 0);
  EXPECT_FALSE(entry.at("spare_rotation").contains("max_abs_RRt_minus_I"));
}

// A tensor stored under two names is measured once, and its error counts for the whole file.
TEST(Inspect, ARotationThatASecondNameSharesCounts) {
  const auto path = TestScratch("inspect-shared") / "layer_0.pt";
  const auto rotation = MakeTensor({2, 2}, {0, 1.000001F, -1, 0});
  WritePt(path, PtOutDict{{PtKey("o_rotation"), rotation}, {PtKey("rotation"), rotation}}, "x");
  const Json report = InspectFile(path);
  EXPECT_GT(report.at("max_abs_RRt_minus_I"), 1e-6);
  EXPECT_EQ(report.at("entry").at("o_rotation").at("max_abs_RRt_minus_I"),
            report.at("max_abs_RRt_minus_I"));
}

TEST(Inspect, WhatIsLongIsCutInTextAndWholeInJson) {
  const auto path = TestScratch("inspect-long") / "layer_0.pt";
  const std::string note = "\u00e9" + std::string(5000, 'n');
  WritePt(path,
          PtOutDict{{PtKey("rotation"), MakeTensor({2, 2}, {0, 1, -1, 0})}, {PtKey("note"), note}},
          "x");
  const Json report = InspectFile(path);
  const std::string text = InspectText(report);
  EXPECT_TRUE(Says(text, "nnn... (5008 characters; --json prints all)\n"));
  EXPECT_TRUE(Says(report.dump(), note));
}

TEST(Inspect, AnythingElseIsRefusedWithAListOfFormats) {
  const auto scratch = TestScratch("inspect-else");
  std::ofstream(scratch / "notes.txt") << "hello, world";
  for (const auto& path : {scratch / "notes.txt", scratch}) {
    EXPECT_TRUE(Says(ErrorOf<InputError>([&] { InspectFile(path); }), "a .safetensors file"));
  }
  EXPECT_THROW(InspectFile(scratch / "missing"), InputError);
}

}  // namespace
}  // namespace oscar
