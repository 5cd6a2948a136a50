// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that tensors are views (strided, shifted, shared), and that no view reaches outside its
// storage.
#include "export/formats/pt/pt_file.h"

#include <gtest/gtest.h>

#include <limits>

#include "linalg/base/error.h"
#include "tests/export/formats/pt/pt_builder.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

const std::vector<float> kTen = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

class PtFileTest : public ::testing::Test {
 protected:
  PtFile Open(const std::string& body, const std::vector<std::vector<float>>& storages = {kTen}) {
    return PtFile::Open(BuildPt(scratch_ / "x.pt", Pickle(body), storages));
  }
  std::vector<float> Floats(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                            int64_t offset) {
    const PtFile file = Open(PickleTensor("0", 10, offset, shape, strides));
    return file.Floats(*file.root().If<PtTensor>(), "x");
  }
  std::filesystem::path scratch_ = TestScratch("pt-file");
};

TEST_F(PtFileTest, ViewsReadInLogicalOrder) {
  EXPECT_EQ(Floats({2, 3}, {3, 1}, 0), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(Floats({3, 2}, {1, 3}, 0), (std::vector<float>{0, 3, 1, 4, 2, 5}));  // transposed
  EXPECT_EQ(Floats({2, 2}, {5, 2}, 1), (std::vector<float>{1, 3, 6, 8}));
  EXPECT_EQ(Floats({2, 2}, {0, 1}, 8), (std::vector<float>{8, 9, 8, 9}));  // expanded
  EXPECT_EQ(Floats({}, {}, 9), (std::vector<float>{9}));
  EXPECT_EQ(Floats({0, 5}, {5, 1}, 0), std::vector<float>{});
  EXPECT_EQ(Floats({10}, {1}, 0), kTen);
}

TEST_F(PtFileTest, NoViewLeavesItsStorage) {
  EXPECT_THROW(Floats({11}, {1}, 0), InputError);
  EXPECT_THROW(Floats({10}, {1}, 1), InputError);
  EXPECT_THROW(Floats({2, 2}, {9, 1}, 0), InputError);
  EXPECT_THROW(Floats({}, {}, 10), InputError);
  EXPECT_THROW(Floats({0}, {1}, 11), InputError);
  const int64_t big = std::numeric_limits<int32_t>::max();
  EXPECT_THROW(Floats({big, big, big}, {big, big, big}, 0), InputError);
  EXPECT_THROW(Floats({big, big, big}, {0, 0, 0}, 0), InputError);
}

TEST_F(PtFileTest, ATinyFileMayNotBecomeALargeTensor) {
  EXPECT_NO_THROW(Floats({512, 512}, {0, 0}, 0));           // 1 MiB
  EXPECT_THROW(Floats({513, 512}, {0, 0}, 0), InputError);  // more than 1 MiB
}

TEST_F(PtFileTest, StoragesHaveTheSizeTheyClaim) {
  EXPECT_THROW(Open(PickleTensor("0", 9, 0, {9}, {1})), InputError);
  EXPECT_THROW(Open(PickleTensor("0", 11, 0, {9}, {1})), InputError);
  EXPECT_THROW(Open(PickleTensor("1", 10, 0, {9}, {1})), InputError);
  EXPECT_THROW(Open(PickleTensor("0", 10, 0, {1}, {1}, "DoubleStorage")), InputError);
  const std::string as_double = PickleTensor("0", 5, 0, {5}, {1}, "DoubleStorage");
  EXPECT_NO_THROW(Open(as_double));
  EXPECT_THROW(Open(PickleTensor("0", 10, 0, {1}, {1}) + as_double + "\x86"), InputError);
}

TEST_F(PtFileTest, HalvesConvertExactly) {
  // The first four are float16 1, -2, 65504, 2^-24. The last two are bfloat16 1, -2.
  const std::vector<uint16_t> halves = {0x3c00, 0xc000, 0x7bff, 0x0001, 0x3f80, 0xc000};
  const auto path = scratch_ / "half.pt";
  const auto write = [&](std::string_view storage) {
    ZipWriter writer(path, "half");
    writer.Add("data.pkl", Pickle(PickleTensor("0", 6, 0, {6}, {1}, storage)));
    writer.Add("data/0", std::as_bytes(std::span(halves)));
    writer.Add("version", "3\n");
    writer.Commit();
    const PtFile file = PtFile::Open(path);
    return file.Floats(*file.root().If<PtTensor>(), "x");
  };
  const std::vector<float> half = write("HalfStorage");
  EXPECT_EQ(half[0], 1.0f);
  EXPECT_EQ(half[1], -2.0f);
  EXPECT_EQ(half[2], 65504.0f);
  EXPECT_EQ(half[3], 0x1p-24f);
  const std::vector<float> brain = write("BFloat16Storage");
  EXPECT_EQ(brain[4], 1.0f);
  EXPECT_EQ(brain[5], -2.0f);
  EXPECT_THROW(write("ShortStorage"), InputError);
}

}  // namespace
}  // namespace oscar
