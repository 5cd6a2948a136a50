// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/formats/gguf_writer.h"

#include <gtest/gtest.h>

#include "linalg/base/error.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

TEST(GgufWriter, WritesOneThatIsReadByHand) {
  const fs::path path = TestScratch("gguf-written") / "r.gguf";
  const auto values = std::make_shared<const FloatTensor>(FloatTensor{{2, 3}, {1, 2, 3, 4, 5, 6}});
  const auto other = std::make_shared<const FloatTensor>(FloatTensor{{1}, {7}});
  WriteGguf(path, {{"flag", true}, {"ratio", 0.5F}, {"name", "x"}}, {{"a", values}, {"b", other}});
  const ReadGguf read(ReadText(path));
  EXPECT_EQ(read.version, 3U);
  EXPECT_EQ(ReadGguf::As<uint32_t>(read.entries.at("general.alignment")), 32U);
  EXPECT_EQ(read.entries.at("flag"), "\1");
  EXPECT_EQ(ReadGguf::As<float>(read.entries.at("ratio")), 0.5F);
  EXPECT_EQ(read.entries.at("name"), "x");
  EXPECT_EQ(read.Of("a").dims, (std::vector<uint64_t>{3, 2}));  // innermost dimension first
  EXPECT_EQ(read.Of("a").Floats(read), values->values);
  EXPECT_EQ(read.Of("b").offset, 32U);
  EXPECT_EQ(read.Of("b").Floats(read), other->values);
  EXPECT_EQ(read.bytes.size(), read.data_begin + 64);
}

TEST(GgufWriter, AppendsAndChangesNothingElse) {
  const fs::path scratch = TestScratch("gguf-append");
  const auto values = std::make_shared<const FloatTensor>(FloatTensor{{2}, {8, 9}});
  for (const uint32_t alignment : {32U, 64U, 16U}) {
    RawGguf model;
    model.alignment = alignment;
    model.entries = {RawEntry("general.alignment", alignment)};
    model.infos = {RawInfo("a", {3}, 0, 0)};
    model.data = std::string(12, 'v');
    const GgufFile before = GgufFile::Open(model.Write(scratch / "m.gguf"));
    const fs::path path = scratch / "out.gguf";
    AppendToGguf(before, path, {{"oscar.x", true}}, {{"new", values}});
    const ReadGguf old(model.Bytes()), read(ReadText(path));
    const size_t entries = old.entries_end - 24, infos = old.infos_end - old.entries_end;
    EXPECT_EQ(read.bytes.substr(24, entries), old.bytes.substr(24, entries));
    EXPECT_EQ(read.bytes.substr(read.entries_end, infos), old.bytes.substr(old.entries_end, infos));
    EXPECT_EQ(read.data_begin % alignment, 0U);
    EXPECT_EQ(read.bytes.substr(read.data_begin, 12), old.bytes.substr(old.data_begin, 12));
    EXPECT_EQ(read.Of("new").offset, alignment);
    EXPECT_EQ(read.Of("new").Floats(read), values->values);
    EXPECT_EQ(read.bytes.size(), read.data_begin + 2 * alignment);
    EXPECT_THROW(AppendToGguf(before, path, {}, {{"a", values}}), InputError);
    EXPECT_THROW(AppendToGguf(before, path, {{"general.alignment", 32U}}, {}), InputError);
  }
}

}  // namespace
}  // namespace oscar
