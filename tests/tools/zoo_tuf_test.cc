// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes the attacks that The Update Framework lists (specification 1.0.33, section 1.5.2) from a
// network mirror against oscar-zoo; tests have the names of the attacks. Each is refused with the
// exit code of its cause and leaves nothing under the output name; the honest zoo is trusted before
// and after. The checks alone are tested in tests/zoo/trust/trust_policy_test.cc.
#include <gtest/gtest.h>

#include <chrono>

#include "capture/files/digest_json.h"
#include "tests/zoo/fault_server.h"
#include "tests/zoo/sample_zoo.h"
#include "tests/zoo/signing/sample_keys.h"
#include "zoo/trust/snapshot.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr int64_t kDaySeconds = 86'400;

class TufAttack : public testing::Test {
 protected:
  TufAttack() : scratch_(TestScratch("tuf")) {
    InitZoo(honest_);
    for (const char* name : {"alice", "carol", "keeper", "mallory"}) {
      const std::string key = NewKeyPem();
      WriteText(File(std::string(name) + ".key"), key);
      WriteText(File(std::string(name) + ".pub"), PublicPem(key));
    }
    Policy("keys: [alice.pub]");
    PublishTo(honest_, 1, "0.1.0", {"alice"});
    PublishTo(honest_, 2, "0.2.0", {"alice"});
    Run({"snapshot", "--zoo", honest_, "--key", File("keeper.key")});
    Mirror();
    server_.emplace(served_, scratch_);
  }

  std::string File(const std::string& name) const { return (scratch_ / name).string(); }
  void Policy(const std::string& rule) {
    WriteText(scratch_ / "trust.yaml", "rules: {\"example/*\": {level: enforce, " + rule +
                                           "}}\nsnapshot: {keys: [keeper.pub]}\n");
  }
  ProgramExit Run(const ProgramStrings& arguments) {
    const ProgramExit ended = RunProgram(OSCAR_ZOO_PROGRAM, arguments);
    EXPECT_TRUE(Exits(ended, 0));
    return ended;
  }
  void PublishTo(const fs::path& zoo, unsigned seed, const std::string& version,
                 const std::vector<std::string>& signers, const std::string& name = "Tiny") {
    const std::string artifact = File("artifact" + std::to_string(seed));
    if (!fs::exists(artifact)) WriteValidated(artifact, seed);
    Run({"publish", artifact, "--zoo", zoo, "--name", "example/" + name, "--version", version});
    for (const std::string& signer : signers)
      Run({"sign", "example/" + name + "@" + version, "--zoo", zoo, "--key",
           File(signer + ".key")});
  }
  // Makes the served zoo a copy of the honest zoo as it is now.
  void Mirror() {
    fs::remove_all(served_);
    fs::copy(honest_, served_, fs::copy_options::recursive);
  }
  void SnapshotOf(const fs::path& zoo, const std::string& signer, int64_t created) {
    WriteSnapshot(Zoo::Open(zoo), oscar::SnapshotOf(Zoo::Open(zoo), created, created + kDaySeconds),
                  {KeyOf(ReadText(File(signer + ".key"))), {}});
  }
  static int64_t Now() {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  fs::path Served(const std::string& file) const { return served_ / file; }

  ProgramExit Pull(const std::string& fault, const std::string& name,
                   const ProgramStrings& more = {}) {
    return PullUnder("trust.yaml", fault, name, more);
  }
  ProgramExit PullUnder(const std::string& policy, const std::string& fault,
                        const std::string& name, const ProgramStrings& more = {}) {
    fs::remove_all(out_);
    return RunProgram(OSCAR_ZOO_PROGRAM,
                      ProgramStrings{"pull", server_->Url(fault) + "/example/" + name, "-o", out_,
                                     "--trust", File(policy)} +
                          more);
  }
  // Expects a pull to end with this exit code and message and to leave nothing under the output
  // name.
  void ExpectRefused(int code, const std::string& words, const std::string& name = "Tiny",
                     const std::string& fault = "plain", const ProgramStrings& more = {}) {
    const ProgramExit ended = Pull(fault, name, more);
    EXPECT_EQ(ended.code, code) << ended.all();
    EXPECT_NE(ended.err.find(words), std::string::npos) << ended.err;
    EXPECT_FALSE(fs::exists(out_));
  }
  void ExpectBelieved(const std::string& name = "Tiny") {
    Mirror();
    EXPECT_TRUE(Exits(Pull("plain", name), 0));
    EXPECT_TRUE(fs::exists(out_));
  }

  const fs::path scratch_, honest_ = scratch_ / "honest", served_ = scratch_ / "served",
                           out_ = scratch_ / "out";
  std::optional<FaultServer> server_;
};

TEST_F(TufAttack, ArbitraryInstallation) {
  PublishTo(served_, 3, "0.3.0", {"mallory"});
  SnapshotOf(served_, "mallory", Now());
  ExpectRefused(11, "signed with the key");
  ExpectBelieved();
}

TEST_F(TufAttack, EndlessData) {
  // Serves endless metadata, whose size is not known in advance, then endless files, whose size is
  // in the entry.
  for (const char* fault : {"endless!", "endless"}) {
    const auto before = std::chrono::steady_clock::now();
    ExpectRefused(3, "", "Tiny", fault);
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(60)) << fault;
    uintmax_t bytes = 0;
    for (const auto& [file, content] : TreeBytes(scratch_))
      if (file.starts_with("out.partial")) bytes += content.size();
    EXPECT_LT(bytes, 64u << 20) << fault;
  }
  ExpectBelieved();
}

// An unsigned file is added to the signed ones.
TEST_F(TufAttack, ExtraneousDependencies) {
  const std::string evil = "evil";
  WriteText(Served("blobs/sha256/" + Sha256Hex(evil)), evil);
  EditJson(Served("entries/example/Tiny/0.2.0.json"), [&](Json& entry) {
    entry["files"]["evil.bin"] = DigestToJson({Sha256Hex(evil), evil.size()});
  });
  server_->Forget();
  ExpectRefused(13, "evil.bin");
  for (const std::string& line : server_->Requests())
    EXPECT_EQ(line.find("blobs/"), std::string::npos) << "asked for before it was judged: " << line;
  ExpectBelieved();
}

// A snapshot date or a version far ahead would make all honest ones look outdated forever.
TEST_F(TufAttack, FastForward) {
  SnapshotOf(served_, "keeper", Now() + 400 * kDaySeconds);
  ExpectRefused(12, "dated in the future");
  Mirror();
  PublishTo(served_, 3, "999999.0.0", {"mallory"});
  SnapshotOf(served_, "mallory", Now());
  ExpectRefused(11, "");
  ExpectBelieved();
}

TEST_F(TufAttack, IndefiniteFreeze) {
  SnapshotOf(served_, "keeper", Now() - 2 * kDaySeconds);
  ExpectRefused(14, "has expired");
  ExpectBelieved();
}

// A mirror that hides the newest version is detected, and a pull from one that does not answer
// ends. The honest zoo then serves the same pull.
TEST_F(TufAttack, MaliciousMirrorsPreventingUpdates) {
  fs::remove(Served("entries/example/Tiny/0.2.0.json"));
  EditJson(Served("entries/example/Tiny/latest.json"), [&](Json& latest) {
    latest["version"] = "0.1.0";
    latest["identity"] = ReadJsonFile(Served("entries/example/Tiny/0.1.0.json")).at("identity");
  });
  ExpectRefused(14, "lists example/Tiny up to 0.2.0");
  ExpectRefused(4, "503", "Tiny", "503!");
  ExpectBelieved();
}

TEST_F(TufAttack, MixAndMatch) {
  // The entry of one version lists a file of another.
  const Json old = ReadJsonFile(Served("entries/example/Tiny/0.1.0.json"));
  EditJson(Served("entries/example/Tiny/0.2.0.json"), [&](Json& entry) {
    entry["files"]["rotations.safetensors"] = old.at("files").at("rotations.safetensors");
  });
  ExpectRefused(12, "rotations.safetensors");
  // Newly signed files come with an older snapshot.
  PublishTo(honest_, 3, "0.3.0", {"alice"});
  Mirror();  // its snapshot is older
  ExpectRefused(10, "does not list example/Tiny@0.3.0");
  Run({"snapshot", "--zoo", honest_, "--key", File("keeper.key")});
  ExpectBelieved();
}

TEST_F(TufAttack, Rollback) {
  ExpectBelieved();  // and 0.2.0 is remembered
  fs::remove(Served("entries/example/Tiny/0.2.0.json"));
  fs::remove(Served("entries/example/Tiny/latest.json"));
  EditJson(Served("index.json"), [](Json& index) { index["entries"].erase(1); });
  SnapshotOf(served_, "keeper", Now() - kDaySeconds / 2);  // before 0.2.0 was listed
  ExpectRefused(14, "0.2.0 was seen before");
  // An older snapshot is refused, too.
  Mirror();
  SnapshotOf(served_, "keeper", Now() - kDaySeconds / 2);
  ExpectRefused(14, "is older than the one seen before");
  ExpectBelieved();
}

TEST_F(TufAttack, SlowRetrieval) {
  for (const char* fault : {"loris", "header-loris!", "stall"}) {
    const auto before = std::chrono::steady_clock::now();
    ExpectRefused(4, "", "Tiny", fault, {"--stall-seconds", "1"});
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(30)) << fault;
  }
  ExpectBelieved();
}

// One key is stolen. That is not enough if the policy requires two signatures. If it requires one,
// the key still cannot change a version that was seen, and it is useless once the policy drops it.
TEST_F(TufAttack, VulnerabilityToKeyCompromise) {
  ExpectBelieved();
  Policy("keys: [alice.pub, carol.pub], signatures: 2");
  PublishTo(served_, 3, "0.3.0", {"alice"});
  SnapshotOf(served_, "keeper", Now());
  ExpectRefused(10, "1 of 2 required signatures");
  Policy("keys: [alice.pub]");
  fs::remove_all(served_);
  InitZoo(served_);
  PublishTo(served_, 3, "0.2.0", {"alice"});
  SnapshotOf(served_, "keeper", Now());
  ExpectRefused(12, "a version never changes");
  Policy("keys: [carol.pub]");
  Mirror();
  ExpectRefused(11, "signed with the key");
}

TEST_F(TufAttack, WrongSoftwareInstallation) {
  PublishTo(honest_, 3, "0.2.0", {"alice"}, "Other");
  Run({"snapshot", "--zoo", honest_, "--key", File("keeper.key")});
  Mirror();
  // Serves a validly signed version of another model, first unchanged, then renamed to the
  // requested model.
  const Json other = ReadJsonFile(Served("entries/example/Other/0.2.0.json"));
  WriteText(Served("entries/example/Tiny/0.2.0.json"), other.dump());
  EditJson(Served("entries/example/Tiny/latest.json"),
           [&](Json& latest) { latest["identity"] = other.at("identity"); });
  ExpectRefused(3, "example/Other");
  EditJson(Served("entries/example/Tiny/0.2.0.json"),
           [](Json& entry) { entry["name"] = "example/Tiny"; });
  fs::remove_all(Served("signatures/example/Tiny/0.2.0"));
  fs::copy(Served("signatures/example/Other/0.2.0"), Served("signatures/example/Tiny/0.2.0"));
  ExpectRefused(12, "the signature belongs to \"example/Other@0.2.0\"");
  ExpectBelieved();
}

// Follows the steps for a new key (configs/zoo/README.md, "Keys") and checks at each step which
// policies can pull.
TEST_F(TufAttack, KeysRotateWithoutAFlagDay) {
  const auto write = [&](const std::string& name, const std::string& keys,
                         const std::string& keepers) {
    WriteText(scratch_ / name, "rules: {\"example/*\": {keys: [" + keys +
                                   "]}}\nsnapshot: {keys: [" + keepers + "]}\n");
  };
  write("old.yaml", "alice.pub", "keeper.pub");
  write("both.yaml", "alice.pub, carol.pub", "keeper.pub, carol.pub");
  write("new.yaml", "carol.pub", "carol.pub");
  const auto expect = [&](int old_code, int both_code, int new_code) {
    Mirror();
    for (const auto& [policy, code] :
         {std::pair("old.yaml", old_code), std::pair("both.yaml", both_code),
          std::pair("new.yaml", new_code)}) {
      const ProgramExit ended = PullUnder(policy, "plain", "Tiny");
      EXPECT_EQ(ended.code, code) << policy << ended.all();
    }
  };
  expect(0, 0, 11);
  for (const char* version : {"0.1.0", "0.2.0"})
    Run({"sign", std::string("example/Tiny@") + version, "--zoo", honest_, "--key",
         File("carol.key")});
  expect(0, 0, 11);
  Run({"snapshot", "--zoo", honest_, "--key", File("carol.key")});
  expect(11, 0, 0);
  PublishTo(honest_, 3, "0.3.0", {"carol"});
  Run({"snapshot", "--zoo", honest_, "--key", File("carol.key")});
  expect(11, 0, 0);
}

// After a yank, users who had the version accept a lower latest version and are told the reason.
// Nothing but a yank makes them accept it.
TEST_F(TufAttack, AYankedVersionIsFollowedByALowerLatest) {
  ExpectBelieved();  // and 0.2.0 is remembered
  Run({"yank", "example/Tiny@0.2.0", "--zoo", honest_, "--reason", "wrong template"});
  Mirror();  // with the old snapshot, the mirror may have forged the yank
  ExpectRefused(14, "which the snapshot does not list as yanked");
  Run({"snapshot", "--zoo", honest_, "--key", File("keeper.key")});
  ExpectBelieved();
  const ProgramExit lower = Pull("plain", "Tiny");
  EXPECT_NE(lower.out.find("example/Tiny@0.1.0"), std::string::npos) << lower.out;
  EXPECT_NE(lower.err.find("example/Tiny@0.2.0, which was seen before, was yanked: wrong template"),
            std::string::npos)
      << lower.err;
  // Without a signed snapshot, nothing proves the yank.
  WriteText(scratch_ / "trust.yaml", "rules: {\"example/*\": {keys: [alice.pub]}}\n");
  ExpectRefused(14, "only a snapshot required by the policy");
}

// An attack that is not on that list: the mirror hides that a version was yanked.
TEST_F(TufAttack, HiddenYank) {
  fs::copy(honest_, scratch_ / "before", fs::copy_options::recursive);
  Run({"yank", "example/Tiny@0.2.0", "--zoo", honest_, "--reason", "wrong template"});
  Run({"snapshot", "--zoo", honest_, "--key", File("keeper.key")});
  fs::remove_all(served_);
  fs::copy(scratch_ / "before", served_, fs::copy_options::recursive);
  fs::copy(honest_ / "snapshot.sigstore.json", served_, fs::copy_options::overwrite_existing);
  ExpectRefused(14, "was yanked, but the zoo does not say so: wrong template");
  ExpectRefused(14, "was yanked", "Tiny@0.2.0");
  Mirror();
  fs::copy(scratch_ / "before/entries/example/Tiny/latest.json", Served("entries/example/Tiny"),
           fs::copy_options::overwrite_existing);
  ExpectRefused(14, "still offers it as the latest: wrong template");
  ExpectBelieved();  // pulls 0.1.0
  const ProgramExit named = Pull("plain", "Tiny@0.2.0");
  EXPECT_TRUE(Exits(named, 0));
  EXPECT_NE(named.err.find("wrong template"), std::string::npos) << named.err;
}

}  // namespace
}  // namespace oscar
