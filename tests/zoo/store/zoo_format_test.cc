// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the formats of entries and pointers, which may come from malicious disks and servers.
#include "zoo/store/zoo_format.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "linalg/base/error.h"

namespace oscar {
namespace {

const std::string kDigest(64, 'a');

ZooEntry SampleEntry() {
  return {.name = {"Qwen", "Qwen3-8B"},
          .version = {0, 1, 0},
          .identity = kDigest,
          .files = {{"manifest.json", {kDigest, 12}}, {"report.json", {std::string(64, '0'), 7}}},
          .model = {{"id", "Qwen/Qwen3-8B"}},
          .validation = {{"source", "model"}},
          .publisher = {{"program", "oscar"}}};
}

Json SampleJson() { return EntryToJson(SampleEntry()); }

void ExpectRefused(const Json& json, const std::string& why) {
  EXPECT_THROW(ParseEntry(json.dump(), "entry"), InputError) << why << "\n" << json.dump();
}

TEST(ZooFormat, PathsAreTheFormat) {
  const ZooName name{"Qwen", "Qwen3-8B"};
  EXPECT_EQ(EntryPath("z", name, {1, 2, 3}), "z/entries/Qwen/Qwen3-8B/1.2.3.json");
  EXPECT_EQ(BlobPath("z", kDigest), "z/blobs/sha256/" + kDigest);
  EXPECT_EQ(StagingFolder("z", name), "z/staging/qwen/qwen3-8b");
}

TEST(ZooFormat, OnlyLowerCaseHexadecimalIsADigest) {
  EXPECT_TRUE(IsSha256Hex(kDigest));
  for (const std::string& text :
       {std::string(63, 'a'), std::string(65, 'a'), std::string(64, 'A'), std::string(64, 'g'),
        "sha256:" + std::string(57, 'a'), "../" + std::string(61, 'a'), std::string(64, '\0'),
        std::string()}) {
    EXPECT_FALSE(IsSha256Hex(text)) << text;
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(BlobPath("z", "../../etc/passwd"), "IsSha256Hex");
}

TEST(ZooEntry, ReadsBackWhatWasWritten) {
  const ZooEntry entry = ParseEntry(CanonicalJson(SampleJson()), "entry");
  EXPECT_EQ(EntryToJson(entry), SampleJson());
  EXPECT_EQ(entry.bytes(), 19u);
  EXPECT_EQ(CanonicalJson(SampleJson())
                .find("{\n \"$schema\": {\n  \"name\": "
                      "\"oscar-zoo-entry\",\n  \"version\": 1\n },"),
            0u);
}

TEST(ZooEntry, HostileOnesAreRefused) {
  struct Case {
    std::string pointer;
    Json value;
  };
  const Json file = {{"sha256", kDigest}, {"size", 1}};
  const Case cases[] = {
      {"/$schema/name", "oscar-zoo"},
      {"/$schema/version", 2},
      {"/$schema/version", 1.0},
      {"/$schema", nullptr},
      {"/name", "../../x"},
      {"/name", "Qwen"},
      {"/name", 7},
      {"/version", "1"},
      {"/version", "../1.0.0"},
      {"/identity", std::string(64, 'A')},
      {"/identity", std::string(64, 'b')},  // not the manifest's digest
      {"/identity", "../../../etc/passwd"},
      {"/files", Json::array()},
      {"/files", Json::object()},  // no manifest
      {"/files", "all"},
      {"/files/report.json/sha256", "../../../../etc/passwd"},
      {"/files/report.json/sha256", std::string(64, 'F')},
      {"/files/report.json/sha256", nullptr},
      {"/files/report.json/size", -1},
      {"/files/report.json/size", 1.5},
      {"/files/report.json/size", "7"},
      {"/files/report.json/size", uint64_t{1} << 63},
      {"/files/report.json/size", int64_t{1} << 51},
      {"/files/report.json/urls", Json::array({"http://example.com"})},
      {"/files/report.json", 3},
      {"/files/..", file},
      {"/files/.hidden", file},
      {"/files/a~1b", file},  // "a/b"
      {"/files/~1etc~1passwd", file},
      {"/files/a\\b", file},
      {"/files/Report.json", file},  // case-fold duplicate
      {"/files/NUL", file},
      {"/files/aux.json", file},
      {"/files/x.", file},
      {"/files/ x", file},
      {"/files/x\n", file},
      {"/files/" + std::string(200, 'x'), file},
      {"/model", "Qwen"},
      {"/validation", Json::array()},
      {"/publisher", nullptr},
      {"/yanked", true},  // unknown member
  };
  for (const Case& c : cases) {
    Json json = SampleJson();
    json[Json::json_pointer(c.pointer)] = c.value;
    ExpectRefused(json, c.pointer);
  }
  for (const char* member :
       {"$schema", "name", "version", "identity", "files", "model", "validation", "publisher"}) {
    Json json = SampleJson();
    json.erase(member);
    ExpectRefused(json, member);
  }
  Json many = SampleJson();
  for (int i = 0; i < 100; ++i) many["files"]["f" + std::to_string(i)] = file;
  ExpectRefused(many, "too many files");
}

TEST(ZooEntry, NoPrefixAndNoTrailingByteIsAccepted) {
  const std::string text = CanonicalJson(SampleJson());
  for (size_t size = 0; size + 1 < text.size(); ++size)
    EXPECT_THROW(ParseEntry(text.substr(0, size), "entry"), InputError) << size;
  for (const std::string& more :
       {std::string("{}"), std::string("x"), std::string(1, '\0'), std::string(",")})
    EXPECT_THROW(ParseEntry(text + more, "entry"), InputError);
  EXPECT_THROW(ParseEntry(R"({"name":"a/b","name":"a/b"})", "entry"), InputError);
  EXPECT_THROW(ParseEntry(std::string(100, '['), "entry"), InputError);
}

TEST(ZooEntry, AnyChangedByteIsReadOrRefusedButNeverCrashes) {
  const std::string text = CanonicalJson(SampleJson());
  EXPECT_TRUE(rc::check([&] {
    std::string changed = text;
    const int edits = *rc::gen::inRange(1, 4);
    for (int i = 0; i < edits; ++i)
      changed[*rc::gen::inRange<size_t>(0, changed.size())] = *rc::gen::arbitrary<char>();
    try {
      const ZooEntry entry = ParseEntry(changed, "entry");
      for (const auto& [name, digest] : entry.files) {
        RC_ASSERT(IsSha256Hex(digest.sha256));
        RC_ASSERT(NamePartProblem(name).empty());
      }
      RC_ASSERT(ZooNameProblem(entry.name.text()).empty());
    } catch (const InputError&) {
    }
  }));
}

TEST(LatestPointer, IsOfItsNameAlone) {
  const ZooName name{"a", "b"};
  const std::string text = CanonicalJson(LatestToJson(name, {{1, 2, 3}, kDigest}));
  EXPECT_EQ(ParseLatest(text, name, "latest").version.text(), "1.2.3");
  EXPECT_THROW(ParseLatest(text, {"a", "c"}, "latest"), InputError);
  EXPECT_THROW(ParseLatest("{}", name, "latest"), InputError);
}

}  // namespace
}  // namespace oscar
