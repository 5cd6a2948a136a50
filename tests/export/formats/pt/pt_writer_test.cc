// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that torch and our own reader read the written files, and that the bytes depend only on the
// value.
#include "export/formats/pt/pt_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>

#include "capture/files/digest.h"
#include "linalg/base/error.h"
#include "tests/export/formats/float_tensor.h"
#include "tests/export/formats/torch_python.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

std::string PickleOf(const PtOut& value) {
  const auto path = TestScratch("pt-writer") / "x.pt";
  WritePt(path, value, "x");
  const ZipReader archive = ZipReader::Open(path);
  const auto bytes = archive.record("data.pkl");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(PtWriter, PinsTheBytesOfEachKind) {
  EXPECT_EQ(PickleOf(PtNone{}), "\x80\x02N.");
  EXPECT_EQ(PickleOf(true), "\x80\x02\x88.");
  EXPECT_EQ(PickleOf(int64_t{255}), "\x80\x02K\xff.");
  EXPECT_EQ(PickleOf(int64_t{256}), std::string("\x80\x02M\x00\x01.", 6));
  EXPECT_EQ(PickleOf(int64_t{-1}), "\x80\x02J\xff\xff\xff\xff.");
  EXPECT_EQ(PickleOf(int64_t{1} << 31), std::string("\x80\x02\x8a\x08\0\0\0\x80\0\0\0\0.", 13));
  EXPECT_EQ(PickleOf(1.5), std::string("\x80\x02G?\xf8\0\0\0\0\0\0.", 12));
  EXPECT_EQ(PickleOf("ab"), std::string("\x80\x02X\x02\0\0\0ab.", 10));
  EXPECT_EQ(PickleOf(PtOutList{}), "\x80\x02].");
  EXPECT_EQ(PickleOf(PtOutList{int64_t{1}}),
            "\x80\x02](K\x01"
            "e.");
  EXPECT_EQ(PickleOf(PtOutDict{{int64_t{1}, PtNone{}}}), "\x80\x02}(K\x01Nu.");
}

TEST(PtWriter, OurReaderGivesBackEveryKind) {
  const auto path = TestScratch("pt-writer-back") / "x.pt";
  const Json json = Json::parse(
      R"({"a": [null, true, false, 0, -5, 65536, 9223372036854775807, -9223372036854775808, 0.1],
          "b": {"c": "text \u00e9\u4e2d", "d": [], "e": {}}})");
  WritePt(path, PtFromJson(json), "x");
  EXPECT_EQ(PtToJson(PtFile::Open(path).root()), json);
}

TEST(PtWriter, EqualTensorsOfOnePointerShareAStorage) {
  const auto path = TestScratch("pt-writer-shared") / "x.pt";
  const FloatTensorPtr tensor = MakeTensor({2, 2}, {1, 2, 3, 4});
  WritePt(path, PtOutDict{{int64_t{0}, tensor}, {int64_t{1}, tensor}}, "x");
  const PtFile file = PtFile::Open(path);
  EXPECT_FALSE(file.archive().Find("data/1").has_value());
  for (const auto& [key, value] : file.root().If<PtDict>()->entries) {
    EXPECT_EQ(file.Floats(*value->If<PtTensor>(), "x"), tensor->values);
  }
}

TEST(PtWriter, TwoRunsGiveTheSameBytes) {
  const auto scratch = TestScratch("pt-writer-twice");
  for (const char* name : {"a.pt", "b.pt"}) {
    WritePt(scratch / name, PtOutDict{{int64_t{7}, MakeTensor({3}, {1, 2, 3})}}, "same");
  }
  EXPECT_EQ(DigestFile(scratch / "a.pt"), DigestFile(scratch / "b.pt"));
}

TEST(PtWriter, RefusesWhatReadersWouldNot) {
  const auto path = TestScratch("pt-writer-refuse") / "x.pt";
  PtOut deep = int64_t{1};
  for (int i = 0; i < 16; ++i) deep = PtOutList{deep};
  EXPECT_THROW(WritePt(path, deep, "x"), InputError);
  EXPECT_THROW(WritePt(path, "\xff", "x"), InputError);
  EXPECT_THROW(PtFromJson(Json(uint64_t{1} << 63)), InputError);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(PtWriter, TorchLoadsEveryKind) {
  const auto path = TestScratch("pt-writer-torch") / "x.pt";
  WritePt(path,
          PtOutDict{{int64_t{3}, MakeTensor({2, 1}, {1.5f, -2})},
                    {PtKey("s"), "x"},
                    {PtKey("n"), PtNone{}},
                    {PtKey("l"), PtOutList{true, int64_t{-70000}, int64_t{1} << 40, 0.25}}},
          "x");
  OSCAR_TORCH_OR_SKIP(output, "--value '" + path.string() + "'");
  EXPECT_EQ(
      output,
      "{3: [[1.5], [-2.0]], 's': 'x', 'n': None, 'l': [True, -70000, 1099511627776, 0.25]}\n");
}

}  // namespace
}  // namespace oscar
