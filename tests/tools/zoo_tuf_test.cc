// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The attacks of The Update Framework (specification 1.0.33, section 1.5.2), each by its name, as a
// mirror on the network makes them against the real oscar-zoo: every one is refused with the exit
// code that says what it is, nothing is left under the name, and the honest zoo is believed before
// and after. The checks alone are in tests/zoo/trust/trust_policy_test.cc.
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
  // The pull ends with this code and these words, and leaves nothing under the name.
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
  // Endless metadata, whose size nobody knows before, and endless files, whose entry has the size.
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

// A file that nobody signed comes along with those that were.
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

// A date or a number far ahead would make everything honest look old for ever.
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

// A mirror that hides the newest version, and one that answers nothing: the first is found out, the
// second ends, and another mirror then serves the same pull.
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
  // Files of one version in another's entry.
  const Json old = ReadJsonFile(Served("entries/example/Tiny/0.1.0.json"));
  EditJson(Served("entries/example/Tiny/0.2.0.json"), [&](Json& entry) {
    entry["files"]["rotations.safetensors"] = old.at("files").at("rotations.safetensors");
  });
  ExpectRefused(12, "rotations.safetensors");
  // Signed files of one time with the signed list of another.
  PublishTo(honest_, 3, "0.3.0", {"alice"});
  Mirror();  // whose snapshot was made before
  ExpectRefused(10, "does not list example/Tiny@0.3.0");
  Run({"snapshot", "--zoo", honest_, "--key", File("keeper.key")});
  ExpectBelieved();
}

TEST_F(TufAttack, Rollback) {
  ExpectBelieved();  // and remembered
  fs::remove(Served("entries/example/Tiny/0.2.0.json"));
  fs::remove(Served("entries/example/Tiny/latest.json"));
  EditJson(Served("index.json"), [](Json& index) { index["entries"].erase(1); });
  SnapshotOf(served_, "keeper", Now() - kDaySeconds / 2);  // what it listed before 0.2.0
  ExpectRefused(14, "0.2.0 was seen before");
  // The list itself may not go back either.
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

// One of two keys is stolen: what it signs alone is not enough, and where it is enough it changes
// no version that was seen, and ends with its name in the policy.
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
  // Another model's version, well signed, where this one is asked for: as it is, and under its
  // name.
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

// configs/zoo/README.md, "Keys": the steps of a new key, and whom each of them serves.
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

// A yank reaches users who had the version: they accept a lower latest version, with the reason,
// and only because of a yank.
TEST_F(TufAttack, AYankedVersionIsFollowedByALowerLatest) {
  ExpectBelieved();  // and remembered
  Run({"yank", "example/Tiny@0.2.0", "--zoo", honest_, "--reason", "wrong template"});
  Mirror();  // whose snapshot was made before: it may be the mirror that yanked it
  ExpectRefused(14, "which the snapshot does not list as yanked");
  Run({"snapshot", "--zoo", honest_, "--key", File("keeper.key")});
  ExpectBelieved();
  const ProgramExit lower = Pull("plain", "Tiny");
  EXPECT_NE(lower.out.find("example/Tiny@0.1.0"), std::string::npos) << lower.out;
  EXPECT_NE(lower.err.find("example/Tiny@0.2.0, which was seen before, was yanked: wrong template"),
            std::string::npos)
      << lower.err;
  // Without a snapshot nobody vouches for a yank.
  WriteText(scratch_ / "trust.yaml", "rules: {\"example/*\": {keys: [alice.pub]}}\n");
  ExpectRefused(14, "only a snapshot required by the policy");
}

// Not of that list: a mirror that does not say that a version was taken back.
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
  ExpectBelieved();  // 0.1.0
  const ProgramExit named = Pull("plain", "Tiny@0.2.0");
  EXPECT_TRUE(Exits(named, 0));
  EXPECT_NE(named.err.find("wrong template"), std::string::npos) << named.err;
}

}  // namespace
}  // namespace oscar
