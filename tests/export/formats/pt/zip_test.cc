// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that our archives equal torch's byte for byte, and which archives are refused.
#include <gtest/gtest.h>

#include <fstream>

#include "export/formats/pt/zip_reader.h"
#include "export/formats/pt/zip_writer.h"
#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

// Rewrites the records of `path` and expects an identical file.
void ExpectRewritesTo(const std::filesystem::path& path, const std::filesystem::path& scratch) {
  const ZipReader reader = ZipReader::Open(path);
  const std::filesystem::path copy = scratch / "copy.pt";
  ZipWriter writer(copy, reader.prefix());
  for (const ZipRecord& record : reader.records()) {
    writer.Add(record.name, reader.record(record.name));
  }
  writer.Commit();
  EXPECT_TRUE(ReadText(copy) == ReadText(path)) << path;
}

TEST(ZipWriter, ReproducesTorchSaveByteForByte) {
  int files = 0;
  const auto scratch = TestScratch("zip-rewrite");
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(TestData("upstream/synthetic"))) {
    if (entry.path().extension() != ".pt") continue;
    ExpectRewritesTo(entry.path(), scratch);
    ++files;
  }
  EXPECT_EQ(files, 9);
}

TEST(ZipWriter, ReproducesThePublishedFiles) {
  OSCAR_PACK_OR_SKIP(path, "upstream");
  int files = 0;
  const auto scratch = TestScratch("zip-rewrite-pack");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.path().extension() != ".pt" ||
        entry.path().string().find("hostile") != std::string::npos) {
      continue;
    }
    ExpectRewritesTo(entry.path(), scratch);
    ++files;
  }
  EXPECT_GE(files, 38);
}

TEST(ZipWriter, PinsItsBytes) {
  const auto path = TestScratch("zip-pin") / "a.pt";
  ZipWriter writer(path, "a");
  writer.Add("version", "3\n");
  writer.Commit();
  const std::string bytes = ReadText(path);
  ASSERT_EQ(bytes.size(), 64u + 2 + 16 + 46 + 9 + 56 + 20 + 22);
  EXPECT_EQ(bytes.substr(0, 30),
            std::string("PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                        "\x09\0\x19\0",
                        30));
  EXPECT_EQ(bytes.substr(30, 13), std::string("a/versionFB\x15\0", 13));
  EXPECT_EQ(bytes.substr(43, 21), std::string(21, 'Z'));
  EXPECT_EQ(bytes.substr(64, 18),
            std::string("3\nPK\x07\x08\xd1\x9e\x67\x55\x02\0\0\0\x02\0\0\0", 18));
}

TEST(ZipReader, FindsRecordsAndNamesMissingOnes) {
  const ZipReader reader = ZipReader::Open(TestData("upstream/hostile/control_valid.pt"));
  EXPECT_EQ(reader.prefix(), "k_rotation");
  EXPECT_EQ(reader.records().size(), 10u);
  EXPECT_EQ(reader.record("byteorder").size(), 6u);
  EXPECT_FALSE(reader.Find("data/99").has_value());
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] { reader.record("data/99"); }), "data/99"));
}

TEST(ZipReader, RefusesNamesThatLeaveTheirFolder) {
  const auto scratch = TestScratch("zip-names");
  for (const char* name :
       {"../data", "a/../b", "a//b", "a/./b", "", "a/", "a\\b", "a\nb", "\xff"}) {
    ZipWriter writer(scratch / "x.pt", "p");
    writer.Add(name, "data");
    writer.Commit();
    EXPECT_THROW(ZipReader::Open(scratch / "x.pt"), InputError) << name;
  }
  for (const char* prefix : {"..", ".", "", "/abs"}) {
    ZipWriter writer(scratch / "x.pt", prefix);
    writer.Add("version", "3");
    writer.Commit();
    EXPECT_THROW(ZipReader::Open(scratch / "x.pt"), InputError) << prefix;
  }
}

// torch.load(weights_only=True) recognizes TorchScript by constants.pkl and refuses it. The folder
// code/ contains its program.
TEST(ZipReader, RefusesTorchScriptByItsName) {
  const auto path = TestScratch("zip-script") / "x.pt";
  for (const char* record : {"constants.pkl", "code/__torch__.py"}) {
    ZipWriter writer(path, "archive");
    writer.Add("data.pkl", "x");
    writer.Add(record, "x");
    writer.Commit();
    const std::string text = ErrorOf<InputError>([&] { ZipReader::Open(path); });
    EXPECT_TRUE(Says(text, "TorchScript"));
    EXPECT_TRUE(Says(text, record));
    std::filesystem::remove(path);
  }
}

TEST(ZipReader, MissingAndEmptyFilesAreInputErrors) {
  const auto scratch = TestScratch("zip-missing");
  EXPECT_THROW(ZipReader::Open(scratch / "none.pt"), InputError);
  std::ofstream(scratch / "empty.pt").close();
  EXPECT_THROW(ZipReader::Open(scratch / "empty.pt"), InputError);
  EXPECT_THROW(ZipReader::Open(scratch), InputError);
}

}  // namespace
}  // namespace oscar
