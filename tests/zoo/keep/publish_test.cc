// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that a zoo accepts some artifacts, refuses others, and returns accepted ones unchanged.
// Longer than 400 lines because each kind of refusal is tested beside the case that is accepted.
#include "zoo/keep/publish.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>

#include "capture/checkpoint/safetensors.h"
#include "export/artifact/artifact_format.h"
#include "export/evaluate/gate.h"
#include "linalg/base/error.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"
#include "tests/zoo/sample_zoo.h"
#include "zoo/keep/verify.h"
#include "zoo/source/pull.h"
#include "zoo/store/publisher.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

const ZooName kName{"example", "Tiny"};

const Json& ArmOf(const Json& validation, const std::string& name) {
  for (const Json& arm : validation.at("arms"))
    if (arm.at("name") == name) return arm;
  throw std::runtime_error("no arm " + name);
}

class PublishTest : public testing::Test {
 protected:
  PublishTest()
      : scratch_(TestScratch("publish")),
        zoo_(NewZoo(scratch_ / "zoo")),
        artifact_(scratch_ / "a") {
    WriteValidated(artifact_);
  }

  Published Do(PublishOptions options = {}) { return Publish(zoo_, artifact_, {}, options); }

  // Expects that the artifact is refused and the zoo does not change.
  void ExpectRefused(const std::string& message) {
    const auto before = TreeBytes(zoo_.path());
    EXPECT_TRUE(Says(ErrorOf<InputError>([&] { Do(); }), message));
    EXPECT_TRUE(before == TreeBytes(zoo_.path()));
  }

  // Expects a problem (exit code 1 of the program) that names the command to run, and no change.
  void ExpectGateFails(const std::string& message) {
    const auto before = TreeBytes(zoo_.path());
    const Published published = Do();
    ASSERT_FALSE(published.problems.empty()) << message;
    EXPECT_TRUE(Says(published.problems[0], message));
    EXPECT_TRUE(Says(published.problems[0], "oscar-validate"));
    EXPECT_TRUE(before == TreeBytes(zoo_.path()));
  }

  void ExpectSound(size_t entries) {
    const Verified verified = Verify(zoo_, std::nullopt);
    for (const ZooProblem& problem : verified.problems)
      ADD_FAILURE() << problem.where << ": " << problem.what;
    EXPECT_EQ(verified.entries, entries);
  }

  fs::path scratch_;
  Zoo zoo_;
  fs::path artifact_;
};

TEST_F(PublishTest, TakesTheModelsNameAndCountsMinorVersions) {
  const Published first = Do();
  EXPECT_EQ(first.entry.name.text(), "example/Tiny");
  EXPECT_EQ(first.entry.version.text(), "0.1.0");
  EXPECT_EQ(first.entry.identity, Artifact::Open(artifact_).identity());
  EXPECT_EQ(first.new_blobs, 7u);  // six files of the artifact, and its timings
  fs::remove_all(artifact_);
  WriteValidated(artifact_, 2);
  EXPECT_EQ(Do().entry.version.text(), "0.2.0");
  EXPECT_EQ(zoo_.Latest(kName)->version.text(), "0.2.0");
  ExpectSound(2);
}

TEST_F(PublishTest, PullGivesTheSameBytes) {
  Do();
  Pull(OpenSource(zoo_.path()), {kName}, scratch_ / "pulled");
  EXPECT_TRUE(FileBytes(artifact_) == FileBytes(scratch_ / "pulled"));
  EXPECT_THROW(Pull(OpenSource(zoo_.path()), {kName}, scratch_ / "pulled"), InputError);
  EXPECT_THROW(Pull(OpenSource(zoo_.path()), {kName, ZooVersion{9, 0, 0}}, scratch_ / "other"),
               InputError);
  EXPECT_THROW(Pull(OpenSource(zoo_.path()), {{"example", "Other"}, {}}, scratch_ / "other"),
               InputError);
  EXPECT_FALSE(fs::exists(scratch_ / "other"));
}

TEST_F(PublishTest, VersionsNeverChange) {
  PublishOptions options;
  options.version = {{1, 0, 0}};
  Do(options);
  const auto before = TreeBytes(zoo_.path());
  EXPECT_THROW(Do(options), InputError);  // even with the same artifact
  fs::remove_all(artifact_);
  WriteValidated(artifact_, 2);
  EXPECT_THROW(Do(options), InputError);
  EXPECT_TRUE(before == TreeBytes(zoo_.path()));
}

TEST_F(PublishTest, TheSameArtifactIsNotGivenASecondVersionUnasked) {
  Do();
  const Published again = Do();
  EXPECT_TRUE(again.already);
  EXPECT_EQ(again.entry.version.text(), "0.1.0");
  ExpectSound(1);
  PublishOptions options;
  options.version = {{1, 0, 0}};
  EXPECT_EQ(Do(options).new_blobs, 0u);
  ExpectSound(2);
}

TEST_F(PublishTest, NamesThatDifferInCaseOnlyAreOneName) {
  Do();
  PublishOptions options;
  options.name = {{"Example", "tiny"}};
  EXPECT_THROW(Do(options), InputError);
  ExpectSound(1);
}

TEST_F(PublishTest, AModelIdThatIsNoNameNeedsOne) {
  fs::remove_all(artifact_);
  ArtifactInfo info = SampleInfo();
  info.model["id"] = "../tiny";
  WriteSampleArtifact(artifact_, 1, info);
  EXPECT_THROW(Do(), UsageError);
}

TEST_F(PublishTest, AnotherBaseModelNeedsANewMajorVersion) {
  const auto with_config = [&](const std::string& sha) {
    EditJson(artifact_ / kReportFile, [&](Json& r) { r["model"]["config"]["sha256"] = sha; });
    EditJson(artifact_ / kManifestFile, [&](Json& m) { m["model"]["config"]["sha256"] = sha; });
    Reseal(artifact_);
  };
  with_config(std::string(64, '1'));
  Do();
  with_config(std::string(64, '2'));
  ExpectRefused("(1.0.0)");
  PublishOptions options;
  options.version = {{1, 0, 0}};
  Do(options);
  ExpectSound(2);
}

TEST_F(PublishTest, WhatWasNotValidatedIsRefused) {
  fs::remove_all(artifact_);
  WriteSampleArtifact(artifact_);
  ExpectGateFails("never validated; run oscar-validate ARTIFACT --model MODEL --gate '...'");
  EXPECT_FALSE(Says(Do().problems[0], "--replace"));  // there is nothing to replace
}

TEST_F(PublishTest, AGateIsEvaluatedAgainAndItsVerdictNotBelieved) {
  EditValidation(artifact_, [](Json& v) {
    for (Json& arm : v["arms"])
      if (arm["name"] == v["gate"]["arm"]) arm["local"]["kl"]["mean"] = 0.9;  // passed stays true
  });
  ExpectGateFails("kl is 0.9, expected <= 0.05");
}

TEST_F(PublishTest, AFailedGateIsRefusedAndNoGateNeedsToBeSaid) {
  EditValidation(artifact_, [](Json& v) { v["gate"]["text"] = "kl<=0.01"; });
  ExpectGateFails("expected <= 0.01");
  EditValidation(artifact_, [](Json& v) { v.erase("gate"); });
  ExpectGateFails("or --ungated");
  PublishOptions options;
  options.demands.ungated = true;
  EXPECT_TRUE(Do(options).problems.empty());
  EXPECT_EQ(zoo_.Read(kName, {0, 1, 0}).validation.at("ungated"), true);
  EXPECT_FALSE(zoo_.Read(kName, {0, 1, 0}).validation.contains("gate"));
  ExpectSound(1);
}

// A gate given to Publish becomes part of the entry, and Verify checks it again.
TEST_F(PublishTest, AGateOfTheEntryIsCheckedWithIt) {
  EditValidation(artifact_, [](Json& v) { v.erase("gate"); });
  PublishOptions options;
  options.demands.gate = "kl<=0.04";
  const ZooEntry entry = Do(options).entry;
  EXPECT_EQ(entry.validation.at("gate").at("text"), "kl<=0.04");
  EXPECT_FALSE(entry.validation.contains("ungated"));
  ExpectSound(1);
  EditJson(EntryPath(zoo_.path(), kName, entry.version),
           [](Json& e) { e["validation"]["gate"]["text"] = "kl<=0.01"; });
  EXPECT_EQ(Verify(zoo_, std::nullopt).problems.size(), 1u);
}

// The report is valid, but its headline is a comparison arm, so its numbers do not describe these
// rotations.
TEST_F(PublishTest, AComparisonIsRefusedGatedOrNot) {
  const auto headline = [](const char* arm) {
    return [arm](Json& v) {
      v["headline_arm"] = arm;
      if (v.contains("gate")) v["gate"] = EvaluateGate(ParseGate("kl<=9"), ArmOf(v, arm));
    };
  };
  PublishOptions ungated;
  ungated.demands.ungated = true;
  for (const char* arm :
       {"bf16", "int4_hadamard", "wrong_layer+clip+windows", "oscar_shared+clip+windows"}) {
    EditValidation(artifact_, headline(arm));
    ExpectGateFails("not a validation of record: its headline is");
  }
  EditValidation(artifact_, [](Json& v) { v.erase("gate"); });
  EXPECT_FALSE(Do(ungated).problems.empty());
  EditValidation(artifact_, headline("oscar_per_head+clip+windows"));
  EXPECT_TRUE(Do(ungated).problems.empty());
}

TEST_F(PublishTest, AGateOnAnotherArmThanTheHeadlineProvesNothing) {
  EditValidation(artifact_, [&](Json& v) {
    v["gate"] = EvaluateGate(ParseGate("kl<=9"), ArmOf(v, "int4_hadamard"));
  });
  ExpectGateFails("the gate judges configuration");
}

// A forger who changes a number and updates the digests must also change every number that follows
// from it.
TEST_F(PublishTest, NumbersThatContradictEachOtherAreRefused) {
  const auto own = [](Json& v) -> Json& {
    for (Json& arm : v["arms"])
      if (arm["name"] == v["headline_arm"]) return arm;
    throw std::runtime_error("no headline");
  };
  const std::pair<std::function<void(Json&)>, const char*> edits[] = {
      {[&](Json& v) { own(v)["local"]["kl"]["mean"] = 0.02; }, "local.kl.mean is 0.02"},
      {[&](Json& v) { own(v)["end_to_end"]["kl"]["mean"] = 0.02; }, "end_to_end.kl.mean is 0.02"},
      {[&](Json& v) { own(v)["local"]["worst"]["kl"] = 0.03; }, "local.worst.kl is 0.03"},
      {[&](Json& v) { own(v)["local"]["kl_all"] = 0.03; }, "local.kl_all is 0.03"},
      {[&](Json& v) {
         own(v)["local"]["heads"]["layer_ids"] = {3, 12};
       },
       "heads.layer_ids"},
      {[&](Json& v) { own(v)["text"]["ppl_ratio"] = 1.001; }, "text.ppl_ratio is 1.001"},
      {[&](Json& v) { own(v)["text"]["perplexity"] = 2.4615; }, "text.ppl_ratio"},
      {[&](Json& v) { own(v)["text"]["token_kl"]["p99"] = 1e-9; }, "text.token_kl.p99"},
      {[&](Json& v) { own(v)["text"]["top1_agreement"] = 0.999999; }, "a whole number divided by"},
      {[&](Json& v) { own(v)["text"]["scored_tokens"] = 20000; }, "text.scored_tokens"},
      {[&](Json& v) { own(v)["needle"]["accuracy"] = 0.99; }, "needle.accuracy is 0.99"},
      {[&](Json& v) { own(v)["windows"] = false; }, "windows is false"},
      {[](Json& v) { v["data"]["tokens"] = 7; }, "tokens is 7"},
      {[](Json& v) { v["settings"]["arms"].erase(1); }, "settings: arms"}};
  for (const auto& [edit, message] : edits) {
    fs::remove_all(artifact_);
    WriteValidated(artifact_, 1, edit);
    EditJson(artifact_ / kReportFile, [](Json& report) {  // a forger updates the gate too
      Json& v = report["validation"];
      v["gate"] =
          EvaluateGate(ParseGate("kl<=0.05"), ArmOf(v, v["headline_arm"].get<std::string>()));
    });
    Reseal(artifact_);
    ExpectRefused(message);
  }
}

TEST_F(PublishTest, AReportOfOtherLayersOrClipRatiosIsRefused) {
  const auto edit = [&](const std::function<void(Json&)>& change, const char* message) {
    fs::remove_all(artifact_);
    WriteValidated(artifact_);
    EditJson(artifact_ / kReportFile, change);
    Reseal(artifact_);
    ExpectRefused(message);
  };
  edit([](Json& r) { r["layers"][0]["sides"]["k"]["clip_ratio"] = 0.5; }, "clip ratio is 0.5");
  edit([](Json& r) { r["layers"][1]["tokens"] = 7; }, "tokens is 7");
  edit([](Json& r) { r["summary"]["arms"]["naive"]["kl_mean"] = 0.1; }, "summary of naive");
}

TEST_F(PublishTest, AValidationOfOtherRotationsOrAnotherModelIsRefused) {
  const auto with_config = [](const std::string& sha) {
    return [sha](Json& json) { json["model"]["config"]["sha256"] = sha; };
  };
  EditJson(artifact_ / kReportFile, with_config(std::string(64, '1')));
  EditJson(artifact_ / kManifestFile, with_config(std::string(64, '1')));
  EditValidation(artifact_, [](Json& v) { v["model"]["config"]["sha256"] = std::string(64, '2'); });
  ExpectGateFails("validated on another model than it was calibrated on");
  EditValidation(artifact_, [](Json& v) {
    v["model"]["config"]["sha256"] = std::string(64, '1');
    v["rotations"]["sha256"] = std::string(64, '0');
  });
  ExpectGateFails("other rotations");
}

TEST_F(PublishTest, AnExtraGateIsAskedOfTheHeadlineArm) {
  PublishOptions options;
  options.demands.gate = "kl<=0.001";
  EXPECT_FALSE(Do(options).problems.empty());
  options.demands.gate = "needle>=0.5,kl<=1";
  EXPECT_TRUE(Do(options).problems.empty());
  options.demands.gate = "klarity<=1";
  EXPECT_THROW(Do(options), UsageError);
}

TEST_F(PublishTest, AReportOutsideItsSchemaIsRefused) {
  EditValidation(artifact_, [](Json& v) { v["headline_arm"] = "none"; });
  ExpectRefused("none");
  EditValidation(artifact_, [](Json& v) { v["headline_arm"] = "oscar_per_head+clip+windows"; });
  EditValidation(artifact_, [](Json& v) { v["source"] = "hearsay"; });
  ExpectRefused("hearsay");
  EditValidation(artifact_, [](Json& v) { v = Json::array(); });
  EXPECT_THROW(Do(), InputError);
}

TEST_F(PublishTest, DamagedAndForgedArtifactsAreRefused) {
  const auto flip = [&](const char* file, std::streamoff at) {
    std::fstream stream(artifact_ / file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(at);
    const char old = static_cast<char>(stream.get());
    stream.seekp(at);
    stream.put(static_cast<char>(old ^ 0x40));
  };
  const auto rotation = SafetensorsFile::Open(artifact_ / kRotationsFile);
  flip(kRotationsFile,
       static_cast<std::streamoff>(rotation.tensors().at("layer.11.v.rotation").offset) + 2);
  ExpectRefused("SHA-256");
  EditValidation(artifact_, [&](Json& v) {  // a forger would update the digest
    v["rotations"]["sha256"] = DigestFile(artifact_ / kRotationsFile).sha256;
  });
  ExpectRefused("not a rotation");
}

// libhdf5 crashes on malicious files, so HDF5 is refused before it is opened, even if its digests
// are right.
TEST_F(PublishTest, Hdf5IsRefusedUnopened) {
  WriteText(artifact_ / kMomentsFile, "\x89HDF\r\n\x1a\n" + std::string(100, '\x7F'));
  Reseal(artifact_);
  ExpectRefused("check that this is a safetensors file");
  fs::rename(artifact_ / kMomentsFile, artifact_ / "moments.h5");
  EditJson(artifact_ / kManifestFile, [](Json& manifest) {
    manifest["$schema"]["version"] = 1;
    manifest["files"]["moments.h5"] = manifest["files"][kMomentsFile];
    manifest["files"].erase(kMomentsFile);
  });
  ExpectRefused("schema oscar-artifact 1, expected oscar-artifact 2");
}

TEST_F(PublishTest, AFileTheManifestDoesNotNameIsRefused) {
  WriteText(artifact_ / "notes.txt", "x");
  ExpectRefused("notes.txt");
}

TEST_F(PublishTest, AReportOfAnotherRunIsRefused) {
  EditJson(artifact_ / kReportFile, [](Json& report) { report["data"]["name"] = "other"; });
  Reseal(artifact_);
  ExpectRefused("different runs");
}

TEST_F(PublishTest, GeometryIsHeldAgainstTheModel) {
  ModelGeometry model;
  for (const int id : {3, 11}) {
    LayerSpec layer;
    layer.layer_id = id;
    layer.attention.num_q_heads = 6;
    layer.attention.num_kv_heads = 2;
    layer.attention.head_dim = 8;
    layer.attention.v_head_dim = 4;
    model.spec.layers.push_back(layer);
  }
  const Json geometry = Artifact::Open(artifact_).manifest().at("geometry");
  for (LayerSpec& layer : model.spec.layers)
    layer.attention.num_q_heads = geometry.at(0).at("num_q_heads").get<int64_t>();
  EXPECT_NO_THROW(CheckArtifact(artifact_, model));
  ModelGeometry other = model;
  other.spec.layers[1].attention.num_kv_heads = 4;
  EXPECT_THROW(CheckArtifact(artifact_, other), InputError);
  other = model;
  other.spec.layers[0].layer_id = 2;
  EXPECT_THROW(CheckArtifact(artifact_, other), InputError);
  other = model;
  other.spec.layers.pop_back();
  EXPECT_THROW(CheckArtifact(artifact_, other), InputError);
}

TEST_F(PublishTest, ADryRunChangesNothing) {
  const auto before = TreeBytes(zoo_.path());
  PublishOptions options;
  options.dry_run = true;
  EXPECT_EQ(Do(options).entry.version.text(), "0.1.0");
  EXPECT_TRUE(before == TreeBytes(zoo_.path()));
}

TEST_F(PublishTest, ADamagedBlobIsReplacedByASoundOne) {
  const Published published = Do();
  const fs::path blob = BlobPath(zoo_.path(), published.entry.files.at(kReportFile).sha256);
  WriteText(blob, "short");
  EXPECT_EQ(Verify(zoo_, std::nullopt).problems.size(), 1u);
  PublishOptions options;
  options.version = {{1, 0, 0}};
  EXPECT_EQ(Do(options).new_blobs, 1u);
  ExpectSound(2);
}

// Without the lock, publishing relies on a rename that never replaces a file.
TEST_F(PublishTest, WithoutTheLockStillExactlyOneWinsAVersion) {
  const CheckedArtifact checked = CheckArtifact(artifact_);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Publisher>> publishers;
    for (int i = 0; i < 4; ++i) {
      std::error_code ignored;
      fs::remove(StagingFolder(zoo_.path(), kName) / "lock", ignored);  // the next lock is new
      publishers.push_back(std::make_unique<Publisher>(zoo_, kName, std::function<void()>()));
    }
    std::atomic<int> won = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const ZooEntry entry{.name = kName,
                             .version = {round, i, 0},
                             .identity = checked.identity,
                             .files = checked.files,
                             .model = checked.manifest.at("model"),
                             .validation = Json::object(),
                             .publisher = {{"who", i}}};
        ZooEntry same = entry;
        same.version = {round, 9, 0};
        publishers[static_cast<size_t>(i)]->PublishEntry(entry);
        publishers[static_cast<size_t>(i)]->AdvanceLatest();
        won += publishers[static_cast<size_t>(i)]->PublishEntry(same) ? 1 : 0;
        publishers[static_cast<size_t>(i)]->AdvanceLatest();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(won, 1) << round;
    EXPECT_EQ(zoo_.Latest(kName)->version, (ZooVersion{round, 9, 0}));
  }
  EXPECT_EQ(zoo_.Versions(kName).size(), 100u);
}

TEST_F(PublishTest, ThePointerNeverMovesBackWhileManyPublish) {
  constexpr int kThreads = 8;
  std::atomic<bool> done = false;
  std::thread reader([&] {
    ZooVersion seen;
    while (!done) {
      const auto latest = zoo_.Latest(kName);
      if (!latest) continue;
      EXPECT_GE(latest->version, seen);
      seen = latest->version;
    }
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      PublishOptions options;
      options.version = {{0, (i * 5) % kThreads + 1, 0}};
      Do(options);
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  reader.join();
  EXPECT_EQ(zoo_.Latest(kName)->version, (ZooVersion{0, kThreads, 0}));
  ExpectSound(kThreads);
}

}  // namespace
}  // namespace oscar
