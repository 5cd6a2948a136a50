// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the 2-bit affine codec, clip thresholds, Hadamard signs and bit reversal with an
// independent implementation, bit for bit. The tests compare every case in the file, so a larger
// file of the same format needs no changes here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "capture/checkpoint/safetensors.h"
#include "linalg/affine_codec.h"
#include "linalg/hadamard.h"
#include "tests/linalg/oracle_pack.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

template <typename T>
::testing::AssertionResult SameBytes(std::span<const T> actual, const std::vector<T>& expected,
                                     size_t first) {
  if (first + actual.size() > expected.size()) return ::testing::AssertionFailure() << "too short";
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::memcmp(&actual[i], &expected[first + i], sizeof(T)) != 0) {
      return ::testing::AssertionFailure()
             << fmt::format("element {}: {}, expected {}", i, actual[i], expected[first + i]);
    }
  }
  return ::testing::AssertionSuccess();
}

// Compares one case of the file, named "d<dim>.clip<percent>.groups<n>". Returns the number of rows
// compared.
size_t CompareCase(const SafetensorsFile& file, const std::string& name, int64_t dim, int percent,
                   int64_t num_groups) {
  const auto x = ReadTensor<float>(file, fmt::format("d{}.x", dim));
  const auto scale = ReadTensor<float>(file, name + ".scale");
  const auto zero = ReadTensor<float>(file, name + ".zero");
  const auto codes = ReadTensor<uint8_t>(file, name + ".codes");
  const auto packed = ReadTensor<uint8_t>(file, name + ".packed_quartered");
  const auto dequantized = ReadTensor<float>(file, name + ".dequantized");
  const AffineFormat format{.bits = 2, .quant_group_size = dim / num_groups};
  const auto width = static_cast<size_t>(dim);
  const auto groups = static_cast<size_t>(num_groups);
  const size_t rows = x.size() / width;
  std::vector<uint8_t> row_codes(width);
  std::vector<float> scales_zeros(2 * groups), y(width);
  for (size_t row = 0; row < rows; ++row) {
    SCOPED_TRACE(fmt::format("{}, row {}", name, row));
    std::vector<float> values(x.begin() + row * width, x.begin() + (row + 1) * width);
    ClampRow<float>(values, ClipThresholdSort<float>(values, percent / 100.0));
    EncodeAffineRow(values, format, row_codes, scales_zeros);
    DecodeAffineRow(row_codes, scales_zeros, format, y);
    EXPECT_TRUE(SameBytes<uint8_t>(PackQuartered(row_codes), packed, row * width / 4));
    EXPECT_TRUE(SameBytes<uint8_t>(row_codes, codes, row * width));
    EXPECT_TRUE(SameBytes<float>(y, dequantized, row * width));
    for (size_t group = 0; group < groups; ++group) {
      const std::span<const float> stored(scales_zeros);
      EXPECT_TRUE(SameBytes<float>(stored.subspan(2 * group, 1), scale, row * groups + group));
      EXPECT_TRUE(SameBytes<float>(stored.subspan(2 * group + 1, 1), zero, row * groups + group));
    }
  }
  return rows;
}

size_t CompareThresholds(const SafetensorsFile& file, const std::string& name, int64_t dim,
                         int percent, ClipMethod method) {
  const auto x = ReadTensor<float>(file, fmt::format("d{}.x", dim));
  const auto expected = ReadTensor<float>(file, name);
  const auto width = static_cast<size_t>(dim);
  for (size_t row = 0; row < x.size() / width; ++row) {
    const std::span<const float> values(x.data() + row * width, width);
    const float threshold = ClipThreshold(values, percent / 100.0, method);
    EXPECT_TRUE(SameBytes<float>({&threshold, 1}, expected, row)) << name << ", row " << row;
  }
  return expected.size();
}

void CompareHadamard(const SafetensorsFile& file, const std::string& name, int64_t dim) {
  const auto signs = ReadTensor<int8_t>(file, name);
  const Matrix h = BlockHadamard(dim) * std::sqrt(static_cast<double>(dim));
  for (int64_t i = 0; i < dim; ++i) {
    for (int64_t j = 0; j < dim; ++j) {
      ASSERT_NEAR(h(i, j), signs[static_cast<size_t>(i * dim + j)], 1e-15) << name;
    }
  }
}

void CompareBitReversal(const SafetensorsFile& file, const std::string& name, int64_t dim) {
  const auto expected = ReadTensor<int32_t>(file, name);
  const std::vector<int64_t> reversed = BitReversal(dim);
  EXPECT_TRUE(std::equal(reversed.begin(), reversed.end(), expected.begin(), expected.end()))
      << name;
}

// Compares every case of the file. Returns the number of rows compared.
size_t CompareAll(const std::filesystem::path& path) {
  const SafetensorsFile file = SafetensorsFile::Open(path);
  size_t rows = 0;
  size_t thresholds = 0;
  for (const auto& [name, info] : file.tensors()) {
    int dim = 0, percent = 0, num_groups = 0;
    if (std::sscanf(name.c_str(), "d%d.clip%d.groups%d", &dim, &percent, &num_groups) == 3) {
      if (!name.ends_with(".codes")) continue;  // a case has several tensors
      rows += CompareCase(file, name.substr(0, name.rfind('.')), dim, percent, num_groups);
    } else if (std::sscanf(name.c_str(), "d%d.clip%d.threshold", &dim, &percent) == 2) {
      const bool bisect = name.ends_with("_bisect");
      thresholds += CompareThresholds(file, name, dim, percent,
                                      bisect ? ClipMethod::kBisect : ClipMethod::kSort);
    } else if (std::sscanf(name.c_str(), "d%d.", &dim) == 1 && name.ends_with("hadamard_sign")) {
      CompareHadamard(file, name, dim);
    } else if (name.ends_with("bit_reversal")) {
      CompareBitReversal(file, name, dim);
    }
  }
  EXPECT_GT(thresholds, 0U);
  return rows;
}

TEST(CodecVectors, SliceBitForBit) {
  EXPECT_EQ(CompareAll(TestData("oracle/codec.safetensors")), 28U * (9 + 2));
}

TEST(CodecVectors, PackBitForBit) {
  OSCAR_PACK_OR_SKIP(path, "oracle");
  EXPECT_GE(CompareAll(path / "codec.safetensors"), 40U * 27);
}

}  // namespace
}  // namespace oscar
