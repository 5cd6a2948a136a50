// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests how a zoo is created, read and verified.
#include "zoo/store/zoo.h"

#include <gtest/gtest.h>

#include "export/artifact/artifact_format.h"
#include "linalg/base/error.h"
#include "tests/support/test_data.h"
#include "tests/zoo/sample_zoo.h"
#include "zoo/keep/publish.h"
#include "zoo/keep/verify.h"
#include "zoo/source/pull.h"
#include "zoo/store/blob_store.h"
#include "zoo/store/zoo_index.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

const ZooName kTinyName{"example", "Tiny"};

TEST(InitZoo, MakesANewOneAndNeverTouchesAnythingElse) {
  const fs::path scratch = TestScratch("init");
  InitZoo(scratch / "new");
  EXPECT_TRUE(Zoo::Open(scratch / "new").Names().empty());
  EXPECT_THROW(InitZoo(scratch / "new"), InputError);
  fs::create_directory(scratch / "empty");
  InitZoo(scratch / "empty");
  fs::create_directories(scratch / "cut/blobs/sha256");  // as if killed before zoo.json
  EXPECT_THROW(Zoo::Open(scratch / "cut"), InputError);
  InitZoo(scratch / "cut");
  EXPECT_TRUE(Verify(Zoo::Open(scratch / "cut"), std::nullopt).problems.empty());
  fs::create_directory(scratch / "used");
  WriteText(scratch / "used/thesis.tex", "x");
  EXPECT_THROW(InitZoo(scratch / "used"), InputError);
  EXPECT_EQ(TreeBytes(scratch / "used").size(), 1u);
  EXPECT_THROW(InitZoo(scratch / "used/thesis.tex"), InputError);
  EXPECT_THROW(Zoo::Open(scratch / "none"), InputError);
}

TEST(InitZoo, ALaterFormatIsRefused) {
  const fs::path scratch = TestScratch("init");
  InitZoo(scratch / "zoo");
  EditJson(scratch / "zoo/zoo.json", [](Json& json) { json["$schema"]["version"] = 2; });
  EXPECT_THROW(Zoo::Open(scratch / "zoo"), InputError);
}

class ZooTest : public testing::Test {
 protected:
  ZooTest() : scratch_(TestScratch("zoo")), zoo_(NewZoo(scratch_ / "zoo")) {
    WriteValidated(scratch_ / "a", 1);
    WriteValidated(scratch_ / "b", 2);
    first_ = Publish(zoo_, scratch_ / "a", {}, {}).entry;
    second_ = Publish(zoo_, scratch_ / "b", {}, {}).entry;
  }

  fs::path Blob(const ZooEntry& entry, const char* file) const {
    return BlobPath(zoo_.path(), entry.files.at(file).sha256);
  }
  fs::path Entry(const ZooEntry& entry) const {
    return EntryPath(zoo_.path(), entry.name, entry.version);
  }
  std::vector<ZooProblem> Problems() const { return Verify(zoo_, std::nullopt).problems; }
  // Expects one problem whose text contains `words`.
  void ExpectProblem(const std::string& words) const {
    const auto problems = Problems();
    ASSERT_EQ(problems.size(), 1u) << words;
    EXPECT_NE((problems[0].where + ": " + problems[0].what).find(words), std::string::npos)
        << problems[0].where << ": " << problems[0].what;
  }

  fs::path scratch_;
  Zoo zoo_;
  ZooEntry first_, second_;
};

TEST_F(ZooTest, IsSoundAsPublishedAndASharedFileIsOneBlob) {
  const Verified verified = Verify(zoo_, std::nullopt);
  EXPECT_TRUE(verified.problems.empty());
  EXPECT_TRUE(verified.notes.empty());
  EXPECT_TRUE(verified.unreferenced.empty());
  EXPECT_EQ(verified.entries, 2u);
  EXPECT_LT(verified.blobs, 14u);  // equal timings are one blob
  EXPECT_EQ(verified.blobs, ListBlobs(zoo_.path()).blobs.size());
}

TEST_F(ZooTest, AMissingShortLongOrChangedBlobIsFound) {
  const fs::path blob = Blob(first_, kReportFile);
  const std::string text = TreeBytes(zoo_.path()).at(blob.lexically_relative(zoo_.path()));
  WriteText(blob, text + " ");
  ExpectProblem("bytes, expected");
  WriteText(blob, text.substr(1));
  ExpectProblem("bytes, expected");
  std::string changed = text;
  changed[changed.size() / 2] ^= 1;
  WriteText(blob, changed);
  ExpectProblem("SHA-256");
  EXPECT_THROW(Pull(OpenSource(zoo_.path()), {kTinyName, first_.version}, scratch_ / "out"),
               InputError);
  EXPECT_FALSE(fs::exists(scratch_ / "out"));
  fs::remove(blob);
  ExpectProblem("No such file");
  fs::create_directory(blob);
  ExpectProblem("not a regular file");
  EXPECT_EQ(Verify(zoo_, {{kTinyName, second_.version}}).problems.size(), 0u);
  EXPECT_EQ(Verify(zoo_, {{kTinyName, first_.version}}).problems.size(), 1u);
  EXPECT_EQ(Verify(zoo_, {{kTinyName, {}}}).problems.size(), 1u);
}

TEST_F(ZooTest, AnEntryOfAnotherNameOrVersionIsFound) {
  fs::copy_file(Entry(first_), EntryFolder(zoo_.path(), kTinyName) / "0.3.0.json");
  ExpectProblem("the file describes example/Tiny@0.1.0");
}

TEST_F(ZooTest, MixAndMatchOfSoundBlobsIsFound) {
  // Every digest is right, but the rotations are those of the other version.
  EditJson(Entry(first_), [&](Json& json) {
    json["files"][kRotationsFile] = EntryToJson(second_)["files"][kRotationsFile];
  });
  ASSERT_EQ(Problems().size(), 1u);
  EXPECT_THROW(Pull(OpenSource(zoo_.path()), {kTinyName, first_.version}, scratch_ / "out"),
               InputError);
}

TEST_F(ZooTest, AnEntryThatLiesAboutItsMeasurementsIsFound) {
  EditJson(Entry(first_), [&](Json& json) { json["validation"]["metrics"]["kl"] = 0.0001; });
  ExpectProblem("'validation' differs from its report");
}

TEST_F(ZooTest, AnEntryThatIsNotJsonIsFoundAndTheOthersAreChecked) {
  WriteText(Entry(first_), "{");
  ASSERT_EQ(Problems().size(), 1u);
  EXPECT_EQ(Verify(zoo_, std::nullopt).entries, 2u);
}

TEST_F(ZooTest, ThePointerMustNameAnEntryButMayLag) {
  const fs::path latest = EntryFolder(zoo_.path(), kTinyName) / kLatestFile;
  WriteText(latest, CanonicalJson(LatestToJson(kTinyName, {first_.version, first_.identity})));
  Verified verified = Verify(zoo_, std::nullopt);
  EXPECT_TRUE(verified.problems.empty());
  EXPECT_EQ(verified.notes.size(), 1u);
  WriteText(latest, CanonicalJson(LatestToJson(kTinyName, {first_.version, second_.identity})));
  EXPECT_EQ(Problems().size(), 1u);
  WriteText(latest, CanonicalJson(LatestToJson(kTinyName, {{9, 0, 0}, first_.identity})));
  EXPECT_EQ(Problems().size(), 1u);
  fs::remove(latest);
  EXPECT_TRUE(Problems().empty());
  EXPECT_EQ(zoo_.Resolve({kTinyName, {}}).text(), "0.2.0");
}

TEST_F(ZooTest, AnIndexThatSaysOtherThingsThanTheEntriesIsFound) {
  const fs::path index = zoo_.path() / kIndexFile;
  const std::string right = ReadText(index);
  const auto edit = [&](const std::function<void(Json&)>& change) {
    WriteText(index, right);
    EditJson(index, change);
  };
  edit([&](Json& json) { json["entries"][0]["identity"] = second_.identity; });
  ExpectProblem("index.json: describes example/Tiny@0.1.0 differently from its entry");
  edit([](Json& json) { json["entries"][1]["kl"] = 0.0; });
  ExpectProblem("index.json: describes example/Tiny@0.2.0 differently from its entry");
  edit([](Json& json) { json["entries"][1]["version"] = "0.3.0"; });
  ExpectProblem("index.json: lists example/Tiny@0.3.0, which is not here");
  edit([](Json& json) { json["entries"][1].erase("identity"); });
  ExpectProblem("\"identity\" is missing");
  // An outdated index, which an interrupted publisher can leave, is a note and not a problem.
  edit([](Json& json) { json["entries"].erase(1); });
  EXPECT_TRUE(Problems().empty());
  EXPECT_EQ(Verify(zoo_, std::nullopt).notes.size(), 1u);
  edit([](Json& json) { json["entries"][1]["yanked"] = "never"; });
  EXPECT_EQ(Verify(zoo_, std::nullopt).notes.size(), 1u);
  fs::remove(index);
  EXPECT_TRUE(Problems().empty());
}

TEST_F(ZooTest, BlobsThatNobodyNamesAreReportedButNoDefect) {
  fs::remove(Entry(second_));
  fs::remove(EntryFolder(zoo_.path(), kTinyName) / kLatestFile);
  ExpectProblem("index.json: lists example/Tiny@0.2.0, which is not here");
  UpdateIndex(zoo_);
  const Verified verified = Verify(zoo_, std::nullopt);
  EXPECT_TRUE(verified.problems.empty());
  EXPECT_GE(verified.unreferenced.size(), 4u);
  WriteText(zoo_.path() / "blobs/sha256/readme", "x");
  WriteText(zoo_.path() / "entries/.DS_Store", "x");
  EXPECT_EQ(Verify(zoo_, std::nullopt).notes.size(), 3u);  // one for the missing pointer
  WriteText(BlobPath(zoo_.path(), std::string(64, '0')), "not zeros");
  ExpectProblem("SHA-256");
}

TEST_F(ZooTest, NamesThatDifferInCaseOnlyAreFound) {
  const fs::path twin = zoo_.path() / "entries/Example/Tiny";
  fs::create_directories(twin);
  Json json = EntryToJson(first_);
  json["name"] = "Example/Tiny";
  WriteText(twin / "0.1.0.json", CanonicalJson(json));
  ExpectProblem("fold case");
}

TEST_F(ZooTest, LinksOutOfTheZooAreNotFollowedAsNames) {
  fs::create_directory_symlink(scratch_, zoo_.path() / "entries/evil");
  fs::create_symlink(Entry(first_), EntryFolder(zoo_.path(), kTinyName) / "5.0.0.json");
  EXPECT_EQ(zoo_.Names().size(), 1u);
  EXPECT_EQ(zoo_.Versions(kTinyName).size(), 2u);
  EXPECT_TRUE(Problems().empty());
}

TEST_F(ZooTest, ACopyWithoutStagingIsTheSameZoo) {
  fs::copy(zoo_.path(), scratch_ / "mirror", fs::copy_options::recursive);
  fs::remove_all(scratch_ / "mirror/staging");
  const Zoo mirror = Zoo::Open(scratch_ / "mirror");
  EXPECT_TRUE(Verify(mirror, std::nullopt).problems.empty());
  Pull(OpenSource(mirror.path()), {kTinyName, {}}, scratch_ / "out");
  EXPECT_TRUE(TreeBytes(scratch_ / "out") == TreeBytes(scratch_ / "b"));
}

}  // namespace
}  // namespace oscar
