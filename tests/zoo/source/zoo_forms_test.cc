// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the index, the other forms of a zoo, maintenance (yank, gc, mirror), searches, and the
// pages.
#include <gtest/gtest.h>

#include "export/artifact/artifact_format.h"
#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"
#include "tests/zoo/sample_zoo.h"
#include "zoo/keep/gc.h"
#include "zoo/keep/mirror.h"
#include "zoo/keep/publish.h"
#include "zoo/keep/verify.h"
#include "zoo/show/entry_diff.h"
#include "zoo/show/fitting.h"
#include "zoo/show/site.h"
#include "zoo/source/model_repository.h"
#include "zoo/source/pull.h"
#include "zoo/store/blob_store.h"
#include "zoo/store/publisher.h"
#include "zoo/store/yank.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

const ZooName kFormsName{"example", "Tiny"};
constexpr const char* kFormsReason = "wrong <template> & \"more\"";

class FormsTest : public testing::Test {
 protected:
  FormsTest() : scratch_(TestScratch("forms")), zoo_(NewZoo(scratch_ / "zoo")) {
    for (unsigned seed : {1U, 2U}) {
      const fs::path artifact = scratch_ / std::to_string(seed);
      WriteValidated(artifact, seed);
      EditJson(artifact / kManifestFile, [](Json& manifest) { WithModel(manifest["model"]); });
      EditJson(artifact / kReportFile, [](Json& report) { WithModel(report["model"]); });
      Reseal(artifact);
      entries_.push_back(Publish(zoo_, artifact, {}, {}).entry);
    }
  }
  static void WithModel(Json& model) {
    model["config"] = {{"sha256", std::string(64, 'c')}, {"size", 9}};
    model["weights_sample"] = {{"model.safetensors", {{"size", 5}, {"sample_sha256", "ab"}}}};
    model["weights"] = {{"model.safetensors", {{"size", 5}, {"sha256", std::string(64, 'd')}}}};
  }
  std::string StoredIndex() const { return ReadText(zoo_.path() / kIndexFile); }
  bool Sound(const fs::path& zoo) const {
    return Verify(Zoo::Open(zoo), std::nullopt).problems.empty();
  }

  fs::path scratch_;
  Zoo zoo_;
  std::vector<ZooEntry> entries_;
};

TEST_F(FormsTest, TheIndexSaysWhatTheEntriesSay) {
  const ZooIndex index = ParseIndex(StoredIndex(), "index");
  ASSERT_EQ(index.rows.size(), 2u);
  const IndexRow& row = index.rows[1];
  EXPECT_EQ(row.text(), "example/Tiny@0.2.0");
  EXPECT_EQ(row.identity, entries_[1].identity);
  EXPECT_EQ(row.bytes, entries_[1].bytes());
  EXPECT_EQ(row.config_sha256, std::string(64, 'c'));
  EXPECT_EQ(row.weights_sha256, Sha256Hex(CanonicalJson(entries_[1].model.at("weights_sample"))));
  EXPECT_EQ(row.kl, entries_[1].validation.at("metrics").at("kl").get<double>());
  EXPECT_GT(row.bits.value_or(0), 2);
  EXPECT_FALSE(row.gate.empty());
  EXPECT_EQ(CanonicalJson(IndexToJson(CurrentIndex(zoo_))), StoredIndex());
}

TEST_F(FormsTest, AnIndexThatLagsOrIsDamagedOrLiesAboutWhatIsThereIsMadeAnew) {
  const std::string right = StoredIndex();
  for (const char* wrong : {"", "{}", "[]", "{\"entries\": []}"}) {
    WriteText(zoo_.path() / kIndexFile, wrong);
    EXPECT_EQ(CanonicalJson(IndexToJson(CurrentIndex(zoo_))), right);
  }
  WriteText(zoo_.path() / kIndexFile, right);
  EditJson(zoo_.path() / kIndexFile, [](Json& index) { index["entries"].erase(0); });
  EXPECT_EQ(CanonicalJson(IndexToJson(CurrentIndex(zoo_))), right);
  UpdateIndex(zoo_);
  EXPECT_EQ(StoredIndex(), right);
  WriteText(EntryPath(zoo_.path(), kFormsName, {0, 3, 0}), "{");
  fs::remove(zoo_.path() / kIndexFile);
  EXPECT_EQ(CurrentIndex(zoo_).problems.size(), 1u);
  EXPECT_EQ(CurrentIndex(zoo_).rows.size(), 2u);
}

TEST_F(FormsTest, AnIndexOfStrangersIsCheckedRowByRow) {
  const Json right = Json::parse(StoredIndex());
  const auto refused = [&](const std::function<void(Json&)>& edit) {
    Json index = right;
    edit(index);
    EXPECT_THROW(ParseIndex(index.dump(), "index"), InputError) << index.dump().substr(0, 200);
  };
  refused([](Json& index) { index["$schema"]["version"] = 2; });
  refused([](Json& index) { index["entries"] = 3; });
  refused([](Json& index) { index["entries"][1] = index["entries"][0]; });
  for (const char* name : {"../x", "a", "a/b/c", "a/../b", "", "a/CON", "a/b\n"})
    refused([&](Json& index) { index["entries"][0]["name"] = name; });
  for (const char* identity : {"", "../../etc/passwd", "ABC"})
    refused([&](Json& index) { index["entries"][0]["identity"] = identity; });
  refused([](Json& index) { index["entries"][0]["version"] = "1"; });
  refused([](Json& index) { index["entries"][0]["bytes"] = -1; });
  refused([](Json& index) { index["entries"][0]["runtimes"] = "all"; });
}

TEST_F(FormsTest, AModelRepositoryIsAZooOfOneVersion) {
  const fs::path repository = scratch_ / "repository";
  PublishRepository(repository, scratch_ / "1", {}, {});
  EXPECT_TRUE(Says(ReadText(repository / ".gitattributes"), "*.safetensors filter=lfs"));
  const ZooSource source = OpenSource("hf:" + repository.string());
  EXPECT_EQ(source.index().rows.size(), 1u);
  Pull(source, {kFormsName}, scratch_ / "out");
  EXPECT_TRUE(TreeBytes(scratch_ / "out") == TreeBytes(scratch_ / "1"));
  EXPECT_THROW(Pull(source, {kFormsName, ZooVersion{0, 2, 0}}, scratch_ / "none"), InputError);
  // The Hub's cache has this layout: links to contents elsewhere.
  fs::create_directory(scratch_ / "contents");
  for (const auto& [name, bytes] : TreeBytes(repository)) {
    WriteText(scratch_ / "contents" / name, bytes);
    fs::remove(repository / name);
    fs::create_symlink(scratch_ / "contents" / name, repository / name);
  }
  Pull(OpenSource("hf:" + repository.string()), {kFormsName}, scratch_ / "linked");
  EXPECT_TRUE(TreeBytes(scratch_ / "linked") == TreeBytes(scratch_ / "1"));
  EXPECT_THROW(PublishRepository(repository, scratch_ / "2", {}, {}), InputError);
  EXPECT_THROW(OpenSource("hf:" + zoo_.path().string()), InputError);
  EXPECT_THROW(OpenSource("hf:nothing"), InputError);
}

TEST_F(FormsTest, AYankMovesLatestAndStaysInEveryCopy) {
  EXPECT_THROW(Yank(zoo_, kFormsName, {0, 2, 0}, "", nullptr), UsageError);
  EXPECT_THROW(Yank(zoo_, kFormsName, {9, 2, 0}, "x", nullptr), InputError);
  Yank(zoo_, kFormsName, {0, 2, 0}, kFormsReason, nullptr);
  EXPECT_THROW(Yank(zoo_, kFormsName, {0, 2, 0}, "again", nullptr), InputError);
  EXPECT_EQ(zoo_.Resolve({kFormsName}).text(), "0.1.0");
  EXPECT_TRUE(Sound(zoo_.path()));
  const ZooIndex index = ParseIndex(StoredIndex(), "index");
  EXPECT_EQ(index.rows[1].yanked, kFormsReason);
  EXPECT_EQ(FindRow(index, {kFormsName})->version.text(), "0.1.0");
  EXPECT_EQ(Search(index, {}).size(), 1u);
  EXPECT_EQ(Search(index, {.yanked = true}).size(), 2u);
  // The next version is above the yanked one and becomes the latest.
  WriteValidated(scratch_ / "3", 3);
  EXPECT_EQ(Publish(zoo_, scratch_ / "3", {}, {}).entry.version.text(), "0.3.0");
  EXPECT_EQ(zoo_.Resolve({kFormsName}).text(), "0.3.0");
  // A yank file that does not name this version still yanks it, but without a reason.
  fs::create_directories(YankPath(zoo_.path(), kFormsName, {0, 1, 0}).parent_path());
  fs::copy(YankPath(zoo_.path(), kFormsName, {0, 2, 0}),
           YankPath(zoo_.path(), kFormsName, {0, 1, 0}));
  EXPECT_NE(YankReason(zoo_, kFormsName, {0, 1, 0}), "");
  EXPECT_NE(YankReason(zoo_, kFormsName, {0, 1, 0}), kFormsReason);
  EXPECT_THROW(FetchEntry(OpenSource(zoo_.path()), {kFormsName, ZooVersion{0, 1, 0}}, {}),
               InputError);
}

TEST_F(FormsTest, GcRemovesWhatNoVersionNamesAndNothingElse) {
  const std::string stray = "stray";
  WriteText(BlobPath(zoo_.path(), Sha256Hex(stray)), stray);
  fs::create_directories(zoo_.path() / "staging/.parts");
  WriteText(zoo_.path() / "staging/.parts/x.part", "half");
  WriteText(zoo_.path() / "staging/example/tiny/entry.tmp-1-0", "half");
  const auto before = TreeBytes(zoo_.path());
  EXPECT_EQ(CollectGarbage(zoo_, true, nullptr).blobs.size(), 1u);
  EXPECT_TRUE(TreeBytes(zoo_.path()) == before);
  const Collected collected = CollectGarbage(zoo_, false, nullptr);
  EXPECT_EQ(collected.unfinished, 2u);
  EXPECT_EQ(collected.bytes, stray.size() + 8);
  EXPECT_EQ(TreeBytes(zoo_.path()).size(), before.size() - 1);
  EXPECT_TRUE(Verify(zoo_, std::nullopt).unreferenced.empty());
  EXPECT_TRUE(Sound(zoo_.path()));
  // An entry that cannot be read may name any blob, so nothing is collected.
  WriteText(EntryPath(zoo_.path(), kFormsName, {0, 5, 0}), "{");
  EXPECT_THROW(CollectGarbage(zoo_, false, nullptr), InputError);
}

TEST_F(FormsTest, GcWaitsForPublishersAndPublishersForGc) {
  struct Enough {};
  const auto give_up = [] { throw Enough(); };
  {
    const Publisher publisher(zoo_, {"other", "name"}, nullptr);
    EXPECT_THROW(CollectGarbage(zoo_, false, give_up), Enough);
    const Publisher second(zoo_, {"third", "name"}, give_up);  // publishers can run together
  }
  CollectGarbage(zoo_, false, give_up);
  const FileLock gc(ZooLockFile(zoo_.path()), LockKind::kExclusive, nullptr);
  EXPECT_THROW(Publisher(zoo_, kFormsName, give_up), Enough);
}

TEST_F(FormsTest, AMirrorIsTheSameZooAndBringsOnlyWhatIsNew) {
  const ZooSource source = OpenSource(zoo_.path());
  const fs::path copy = scratch_ / "copy";
  const Mirrored first = Mirror(source, copy, std::nullopt, {}, nullptr);
  EXPECT_EQ(first.added.size(), 2u);
  EXPECT_TRUE(TreeBytes(copy) == TreeBytes(zoo_.path()));
  EXPECT_TRUE(Sound(copy));
  WriteValidated(scratch_ / "3", 3);
  const ZooEntry third = Publish(zoo_, scratch_ / "3", {}, {}).entry;
  Yank(zoo_, kFormsName, {0, 1, 0}, kFormsReason, nullptr);
  const Mirrored second = Mirror(source, copy, std::nullopt, {}, nullptr);
  EXPECT_EQ(second.added, std::vector<std::string>{"example/Tiny@0.3.0"});
  EXPECT_EQ(second.yanked, std::vector<std::string>{"example/Tiny@0.1.0"});
  EXPECT_LE(second.counts.bytes, third.bytes());
  EXPECT_TRUE(TreeBytes(copy) == TreeBytes(zoo_.path()));
  EXPECT_EQ(Mirror(source, copy, std::nullopt, {}, nullptr).counts.bytes, 0u);
  EXPECT_TRUE(Mirror(source, scratch_ / "one", ZooName{"no", "one"}, {}, nullptr).added.empty());
}

TEST_F(FormsTest, AMirrorTakesNothingThatIsWrongAndSaysWhat) {
  const fs::path copy = scratch_ / "copy";
  WriteText(BlobPath(zoo_.path(), entries_[1].files.at(kReportFile).sha256), "damaged");
  const Mirrored mirrored = Mirror(OpenSource(zoo_.path()), copy, std::nullopt, {}, nullptr);
  EXPECT_EQ(mirrored.added, std::vector<std::string>{"example/Tiny@0.1.0"});
  ASSERT_EQ(mirrored.problems.size(), 1u);
  EXPECT_TRUE(Says(mirrored.problems[0], entries_[1].files.at(kReportFile).sha256));
  EXPECT_TRUE(Sound(copy));
  // The other zoo has a different artifact with the same version.
  const Zoo other = NewZoo(scratch_ / "other");
  WriteValidated(scratch_ / "3", 3);
  Publish(other, scratch_ / "3", {}, {});
  const Mirrored clash = Mirror(OpenSource(other.path()), copy, std::nullopt, {}, nullptr);
  ASSERT_EQ(clash.problems.size(), 1u);
  EXPECT_TRUE(Says(clash.problems[0], "never change"));
  EXPECT_EQ(Zoo::Open(copy).Read(kFormsName, {0, 1, 0}).identity, entries_[0].identity);
}

TEST_F(FormsTest, WhatFitsACheckpointIsFoundByDigestsBestFirst) {
  const ModelDigests model{std::string(64, 'c'),
                           WeightsDigest(entries_[0].model["weights_sample"])};
  ZooIndex index = CurrentIndex(zoo_);
  ASSERT_EQ(FindFitting(index, model).size(), 2u);
  EXPECT_TRUE(FindFitting(index, model)[0].weights_known);
  EXPECT_EQ(FindFitting(index, model)[0].row->version.text(), "0.2.0");  // ties go to the newer one
  index.rows[0].kl = *index.rows[1].kl / 2;
  EXPECT_EQ(FindFitting(index, model)[0].row->version.text(), "0.1.0");
  index.rows[0].gate.clear();
  EXPECT_EQ(FindFitting(index, model)[0].row->version.text(), "0.2.0");
  index.rows[1].weights_sha256.clear();
  EXPECT_EQ(FindFitting(index, model)[0].row->version.text(), "0.1.0");
  index.rows[1].weights_sha256 = std::string(64, 'e');
  EXPECT_EQ(FindFitting(index, model).size(), 1u);  // another checkpoint of the same shape
  index.rows[0].yanked = "x";
  EXPECT_TRUE(FindFitting(index, model).empty());
  EXPECT_TRUE(FindFitting(CurrentIndex(zoo_), {std::string(64, 'f'), ""}).empty());
}

TEST_F(FormsTest, ModelDigestsAreThoseOfTheFiles) {
  const fs::path model = TestData("tiny-qwen3");
  const ModelDigests digests = DigestsOfModel(model);
  EXPECT_EQ(digests.config_sha256, Sha256Hex(ReadText(model / "config.json")));
  EXPECT_EQ(digests.weights_sha256.size(), 64u);
}

TEST_F(FormsTest, SearchAsksForAllThatIsGiven) {
  ZooIndex index = CurrentIndex(zoo_);
  index.rows[0].runtimes = {"vllm"};
  index.rows[0].kl = 0.001;
  const auto count = [&](const SearchQuery& query) { return Search(index, query).size(); };
  EXPECT_EQ(count({}), 2u);
  EXPECT_EQ(Search(index, {})[0], &index.rows[0]);
  EXPECT_EQ(count({.text = "tINY"}), 2u);
  EXPECT_EQ(count({.text = "qwen"}), 0u);
  EXPECT_EQ(count({.base = "ccc"}), 2u);
  EXPECT_EQ(count({.base = "cd"}), 0u);
  EXPECT_EQ(count({.runtime = "vllm"}), 1u);
  EXPECT_EQ(count({.method = "oscar"}), 2u);
  EXPECT_EQ(count({.max_bits = 2.0}), 0u);
  EXPECT_EQ(count({.max_kl = 0.01}), 1u);
}

TEST_F(FormsTest, AnArtifactDoesNotDifferFromItselfAndDoesFromAnother) {
  const fs::path a = scratch_ / "1", b = scratch_ / "2";
  for (const SideDiff& side : DiffArtifacts(a, "a", a, "a").sides) {
    EXPECT_LT(side.max_angle, 1e-4);  // rotations are float32
    EXPECT_EQ(side.spectrum, 0);
  }
  const ArtifactDiff ab = DiffArtifacts(a, "a", b, "b"), ba = DiffArtifacts(b, "b", a, "a");
  ASSERT_EQ(ab.sides.size(), 4u);  // two layers, keys and values
  for (size_t i = 0; i < ab.sides.size(); ++i) {
    EXPECT_GT(ab.sides[i].spectrum, 0);
    EXPECT_NEAR(ab.sides[i].spectrum, ba.sides[i].spectrum, 1e-12);
    EXPECT_GT(ab.sides[i].max_angle, 1);  // different random rotations
    EXPECT_LE(ab.sides[i].max_angle, 90 + 1e-9);
    EXPECT_LE(ab.sides[i].mean_angle, ab.sides[i].max_angle);
    EXPECT_EQ(ab.sides[i].clip_a, ba.sides[i].clip_b);
  }
  EXPECT_FALSE(ab.metrics.empty());
  EXPECT_EQ(DiffToJson(ab).at("sides").size(), 4u);
  EXPECT_TRUE(Says(DiffPage(ab), "<h1>Two artifacts</h1>"));
}

TEST_F(FormsTest, ASiteShowsEveryModelAndRunsNothingOfStrangers) {
  Yank(zoo_, kFormsName, {0, 2, 0}, kFormsReason, nullptr);
  const fs::path site = scratch_ / "site";
  const SiteOptions options{.url = "https://zoo.example.org", .title = "A <b>zoo</b>"};
  EXPECT_TRUE(WriteSite(zoo_, site, options).problems.empty());
  const std::string index = ReadText(site / "index.html"),
                    page = ReadText(site / "models/example/Tiny/index.html"),
                    feed = ReadText(site / "feed.xml");
  EXPECT_TRUE(Says(index, "href=\"models/example/Tiny/index.html\""));
  EXPECT_TRUE(Says(
      page, "oscar-zoo pull https://zoo.example.org/example/Tiny@sha256:" + entries_[0].identity));
  EXPECT_TRUE(Says(page, "yanked: wrong &lt;template&gt; &amp; &quot;more&quot;"));
  EXPECT_TRUE(Says(page, "id=\"methods\""));  // the report is on the page
  EXPECT_TRUE(Says(feed, "example/Tiny@0.2.0 yanked"));
  EXPECT_TRUE(Says(ReadText(site / "models/example/Tiny/badge.svg"), "attention-KL 0.03"));
  for (const std::string& text : {index, page, feed}) {
    EXPECT_FALSE(Says(text, "<b>zoo"));
    EXPECT_FALSE(Says(text, " src="));
    EXPECT_FALSE(Says(text, "url("));
    EXPECT_EQ(text.find("<link"), text == feed ? text.find("<link href=\"models/") : text.npos);
  }
  EXPECT_FALSE(Says(page, "<script"));
  EXPECT_TRUE(Says(index, "script-src 'sha256-"));
  // A site may replace itself, but not another folder.
  EXPECT_TRUE(WriteSite(zoo_, site, options).problems.empty());
  EXPECT_THROW(WriteSite(zoo_, zoo_.path(), options), InputError);
  WriteText(BlobPath(zoo_.path(), entries_[0].files.at(kReportFile).sha256), "{}");
  EXPECT_EQ(WriteSite(zoo_, site, options).problems.size(), 1u);
}

}  // namespace
}  // namespace oscar
