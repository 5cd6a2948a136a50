// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads arrays and tensors that users supply, and tests which of them are refused.
#include "export/formats/given_rotations.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "capture/checkpoint/safetensors.h"
#include "export/formats/npy_file.h"
#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Returns the bytes that numpy.save writes in version 1.0 of its format.
template <typename T>
std::string NpyBytes(const std::string& descr, const std::string& shape,
                     const std::vector<T>& values, const char* fortran = "False") {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}), }}", descr, fortran, shape);
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xFF);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return bytes;
}

fs::path SaveBytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

// Returns `count` rotations of the plane, by 0.1, 0.2, ... radians.
template <typename T>
std::vector<T> Turns(int count) {
  std::vector<T> values;
  for (int i = 1; i <= count; ++i) {
    const double c = std::cos(i / 10.0), s = std::sin(i / 10.0);
    for (const double value : {c, s, -s, c}) values.push_back(static_cast<T>(value));
  }
  return values;
}

fs::path Tensors(const fs::path& path, const std::map<std::string, FloatTensor>& tensors) {
  std::vector<SafetensorsWriter::Declaration> declared;
  for (const auto& [name, tensor] : tensors) declared.push_back({name, DType::kF32, tensor.shape});
  SafetensorsWriter writer(path, declared);
  for (const auto& [name, tensor] : tensors)
    writer.Write(name, std::as_bytes(std::span(tensor.values)));
  writer.Commit();
  return path;
}

std::string WhyRefused(const std::string& files) {
  return ErrorOf<Error>([&] { ReadGivenRotations(files); });
}

bool Has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

TEST(NpyFile, ReadsFloatsOfAnySize) {
  const fs::path scratch = TestScratch("npy");
  const NpyFile f8 = ReadNpyFile(
      SaveBytes(scratch / "f8.npy", NpyBytes<double>("<f8", "3, 2, 2", Turns<double>(3))));
  const NpyFile f4 = ReadNpyFile(
      SaveBytes(scratch / "f4.npy", NpyBytes<float>("<f4", "3, 2, 2", Turns<float>(3))));
  EXPECT_EQ(f8.shape, (std::vector<int64_t>{3, 2, 2}));
  EXPECT_EQ(f8.dtype, DType::kF64);
  EXPECT_EQ(f8.values, f4.values);
  const NpyFile f2 =
      ReadNpyFile(SaveBytes(scratch / "f2.npy", NpyBytes<uint16_t>("<f2", "2,", {0x3C00, 0xC000})));
  EXPECT_EQ(f2.values, (std::vector<float>{1, -2}));
}

TEST(NpyFile, RefusesWhatIsNoArrayOfFloats) {
  const fs::path scratch = TestScratch("npy_refused");
  const auto refusal = [&](const std::string& bytes) {
    return WhyRefused(SaveBytes(scratch / "x.npy", bytes).string());
  };
  const std::vector<float> turns = Turns<float>(3);
  EXPECT_TRUE(Has(refusal("not numpy at all"), "numpy.save"));
  EXPECT_TRUE(Has(refusal(std::string("\x93NUMPY\x01\x00\x02\x00{}", 12)), "header \"{}\""));
  EXPECT_TRUE(Has(refusal(std::string("\x93NUMPY\x01\x00\x00\x00{", 11)), "numpy.save"));
  for (const char version : {'\0', '\4'}) {
    std::string bytes = NpyBytes<float>("<f4", "3, 2, 2", turns);
    bytes[6] = version;
    EXPECT_TRUE(Has(refusal(bytes), ".npy version"));
  }
  EXPECT_TRUE(Has(refusal(NpyBytes<float>("<i4", "3, 2, 2", turns)), "<i4"));
  EXPECT_TRUE(Has(refusal(NpyBytes<float>(">f4", "3, 2, 2", turns)), "little-endian"));
  EXPECT_TRUE(Has(refusal(NpyBytes<float>("<f4", "3, 2, 2", turns, "True")), "ascontiguousarray"));
  EXPECT_TRUE(Has(refusal(NpyBytes<float>("<f4", "4, 2, 2", turns)), "48 bytes of values"));
  EXPECT_TRUE(Has(refusal(NpyBytes<float>("<f4", "999999999, 999999999, 4", turns)), "48 bytes"));
  EXPECT_TRUE(Has(refusal(NpyBytes<float>("<f4", "0, 2, 2", turns)), "48 bytes"));
  EXPECT_TRUE(Has(refusal(NpyBytes<float>("<f4", "12,", turns)), "[layers, d, d]"));
  EXPECT_TRUE(Has(refusal(NpyBytes<float>("<f4", "3, 4, 1", turns)), "[layers, d, d]"));
  EXPECT_TRUE(Has(refusal(NpyBytes<float>("<f4', 'x': '", "3, 2, 2", turns)), "header"));
  // Python would not read these shapes as a tuple of numbers.
  for (const char* shape : {"2 3", "6", ",", "2,,3", "2, 3,,", "2,  3"})
    EXPECT_TRUE(Has(refusal(NpyBytes<float>("<f4", shape, std::vector<float>(6))), "header"))
        << shape;
}

TEST(GivenRotations, AnArrayIsMatricesOfLayersOrOfHeads) {
  const fs::path scratch = TestScratch("given_npy");
  const std::string k =
      SaveBytes(scratch / "k.npy", NpyBytes<float>("<f4", "3, 2, 2, 2", Turns<float>(6))).string();
  const std::string v =
      SaveBytes(scratch / "v.npy", NpyBytes<double>("<f8", "3, 2, 2", Turns<double>(3))).string();
  const GivenRotations both = ReadGivenRotations(k + ":" + v);
  ASSERT_EQ(both.k->layers.size(), 3U);
  EXPECT_EQ(both.k->layers[1].rotation->shape, (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(both.k->layers[1].rotation->values[0], std::cos(0.3F));
  EXPECT_EQ(both.v->layers[2].rotation->shape, (std::vector<int64_t>{2, 2}));
  EXPECT_TRUE(Has(DescribeRotations(*both.k), "3 layers, a matrix for each of 2 KV heads, ortho"));
  EXPECT_FALSE(ReadGivenRotations(k + ":none").v.has_value());
  EXPECT_FALSE(ReadGivenRotations("none:" + v).k.has_value());
  EXPECT_TRUE(ReadGivenRotations(v).k.has_value());
  EXPECT_TRUE(Has(WhyRefused("none:none"), "give rotations for keys, values or both"));
}

TEST(GivenRotations, WhatIsNotOrthogonalIsRefusedWithItsError) {
  std::vector<float> turns = Turns<float>(3);
  turns[5] += 0.01F;
  const fs::path path =
      SaveBytes(TestScratch("given_skew") / "k.npy", NpyBytes<float>("<f4", "3, 2, 2", turns));
  const std::string refusal = WhyRefused(path.string());
  EXPECT_TRUE(Has(refusal, "layer 1") && Has(refusal, "not orthogonal")) << refusal;
}

TEST(GivenRotations, TensorsMayBringQueriesMeansAndScales) {
  const fs::path scratch = TestScratch("given_tensors");
  const FloatTensor skew{{2, 2}, {2, 0, 0, 0.5F}}, undo{{2, 2}, {0.5F, 0, 0, 2}};
  std::map<std::string, FloatTensor> tensors = {
      {"layer.4.k.rotation", skew},
      {"layer.4.k.query_rotation", undo},
      {"layer.4.k.mean", {{2}, {1, 2}}},
      {"layer.4.k.pair_scale", {{3, 2}, {1, 2, 1, 2, 1, 2}}},
      {"layer.4.v.rotation", {{2, 2}, {0, 1, -1, 0}}}};
  const GivenRotations given =
      ReadGivenRotations(Tensors(scratch / "all.safetensors", tensors).string());
  const RotationLayer& layer = given.k->layers.at(0);
  EXPECT_EQ(layer.layer_id, 4);
  EXPECT_EQ(layer.q_rotation->values, undo.values);
  EXPECT_EQ(layer.k_mean->values, (std::vector<float>{1, 2}));
  EXPECT_EQ(layer.pair_scale->shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(given.v->layers.at(0).rotation->values[2], -1);
  EXPECT_TRUE(Has(DescribeRotations(*given.k), "with inverses to 0, keys centred"));
  EXPECT_TRUE(Has(DescribeRotations(*given.v), "orthogonal to 0"));

  const auto refusal = [&](const std::string& name, const FloatTensor& tensor) {
    std::map<std::string, FloatTensor> changed = tensors;
    changed[name] = tensor;
    return WhyRefused(Tensors(scratch / "x.safetensors", changed).string());
  };
  EXPECT_TRUE(Has(refusal("layer.4.k.query_rotation", skew), "does not undo the rotation"));
  EXPECT_TRUE(Has(refusal("layer.4.v.rotation", skew), "not orthogonal"));
  EXPECT_TRUE(Has(refusal("layer.4.k.pair_scale", {{2}, {1, 0}}), "not above 0"));
  EXPECT_TRUE(Has(refusal("layer.4.k.mean", {{3}, {1, 2, 3}}), "expected 2 values"));
  EXPECT_TRUE(Has(refusal("layer.5.k.mean", {{2}, {1, 2}}), "rotation is missing"));
  EXPECT_TRUE(Has(refusal("layer.4.k.eigenvalues", {{2}, {1, 2}}), "--other-artifact"));
}

}  // namespace
}  // namespace oscar
