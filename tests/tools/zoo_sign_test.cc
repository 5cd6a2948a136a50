// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests signatures with oscar-zoo: signing, verifying, pulling under a policy and exit codes, also
// if signing is killed or the disk is full.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "tests/export/artifact/sample_artifact.h"
#include "tests/support/run_program.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"
#include "tests/zoo/fault_server.h"
#include "tests/zoo/sample_zoo.h"
#include "tests/zoo/signing/sample_keys.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

using Strings = ProgramStrings;

class ZooSigning : public testing::Test {
 protected:
  ZooSigning() : scratch_(TestScratch("zoo-signing")), zoo_((scratch_ / "zoo").string()) {
    InitZoo(zoo_);
    for (const unsigned seed : {1U, 2U}) {
      WriteValidated(scratch_ / std::to_string(seed), seed);
      EXPECT_EQ(Run({"publish", (scratch_ / std::to_string(seed)).string()}).code, 0);
    }
    for (const char* name : {"alice", "bob"}) {
      const std::string key = NewKeyPem();
      WriteText(scratch_ / (std::string(name) + ".key"), key);
      WriteText(scratch_ / (std::string(name) + ".pub"), PublicPem(key));
    }
    Policy("rules: {\"example/*\": {level: enforce, keys: [alice.pub]}}\n");
  }

  std::string File(const std::string& name) const { return (scratch_ / name).string(); }
  void Policy(const std::string& text) { WriteText(scratch_ / "trust.yaml", text); }
  ProgramExit Run(Strings arguments, const Strings& environment = {}) const {
    arguments.insert(arguments.end(), {"--zoo", zoo_});
    return RunProgram(OSCAR_ZOO_PROGRAM, arguments, environment);
  }
  ProgramExit Sign(const std::string& reference, const std::string& who,
                   const Strings& environment = {}) const {
    return Run({"sign", reference, "--key", File(who + ".key")}, environment);
  }
  ProgramExit Trusted(const std::string& reference) const {
    return Run({"verify", reference, "--trust", File("trust.yaml")});
  }

  const fs::path scratch_;
  const std::string zoo_;
};

TEST_F(ZooSigning, ExitCodesTellWhatIsWrong) {
  const ProgramExit none = Trusted("example/Tiny@0.1.0");
  EXPECT_TRUE(Exits(none, 10));
  EXPECT_TRUE(Says(none.out, "UNSIGNED: example/Tiny@0.1.0"));
  EXPECT_EQ(Sign("example/Tiny@0.1.0", "bob").code, 0);
  EXPECT_EQ(Trusted("example/Tiny@0.1.0").code, 11);
  const ProgramExit signed_by_alice = Sign("example/Tiny@0.1.0", "alice");
  EXPECT_TRUE(Exits(signed_by_alice, 0));
  EXPECT_EQ(signed_by_alice.out.find("signed example/Tiny@0.1.0"), 0u) << signed_by_alice.out;
  const ProgramExit good = Trusted("example/Tiny@0.1.0");
  EXPECT_TRUE(Exits(good, 0));
  EXPECT_TRUE(Says(good.out, "TRUSTED: example/Tiny@0.1.0 by "));
  const Json json =
      Json::parse(Run({"verify", "example/Tiny", "--trust", File("trust.yaml"), "--json"}).out);
  EXPECT_EQ(json.at("ok"), false);  // 0.2.0 is unsigned
  EXPECT_EQ(json.at("trust")[0].at("trust"), "TRUSTED");
  EXPECT_EQ(json.at("trust")[1].at("exit_code"), 10);

  // Version 0.2.0 is seen; then the zoo offers 0.1.0 as the latest.
  EXPECT_EQ(Sign("example/Tiny", "alice").code, 0);
  EXPECT_EQ(Trusted("example/Tiny").code, 0);
  const fs::path pulled = scratch_ / "pulled";
  const Strings pull = {"pull",          "example/Tiny", "-o",
                        pulled.string(), "--trust",      File("trust.yaml")};
  fs::remove(fs::path(zoo_) / "entries/example/Tiny/0.2.0.json");
  fs::remove(fs::path(zoo_) / "entries/example/Tiny/latest.json");
  EXPECT_TRUE(Exits(Run(pull), 14));
  EXPECT_FALSE(fs::exists(pulled));
  EXPECT_EQ(
      Run({"pull", "example/Tiny@0.1.0", "-o", pulled.string(), "--trust", File("trust.yaml")})
          .code,
      0);

  WriteText(fs::path(zoo_) / "blobs/sha256" / Sha256Hex(ReadText(scratch_ / "1/report.json")), "x");
  EXPECT_EQ(Trusted("example/Tiny@0.1.0").code, 12);
  EXPECT_EQ(Run({"verify", "example/Tiny@0.1.0"}).code, 3);  // the exit code without a policy
}

TEST_F(ZooSigning, UnderWarnItIsPrintedAndPulled) {
  Policy("rules: {\"*\": {level: warn, keys: [alice.pub]}}\n");
  const std::string out = File("pulled");
  const ProgramExit pulled =
      Run({"pull", "example/Tiny", "-o", out}, {"OSCAR_TRUST=" + File("trust.yaml")});
  EXPECT_TRUE(Exits(pulled, 0));
  EXPECT_TRUE(Says(pulled.all(), "UNSIGNED"));
  EXPECT_TRUE(fs::exists(out));
}

TEST_F(ZooSigning, APullWithoutAPolicySaysWhoSigned) {
  const auto says = [&](const std::string& words, const Strings& more = {}) {
    fs::remove_all(scratch_ / "pulled");
    Strings arguments = ProgramStrings{"pull", "example/Tiny", "-o", File("pulled")} + more;
    const ProgramExit pulled = Run(arguments);
    EXPECT_TRUE(Exits(pulled, 0));
    EXPECT_TRUE(Says(pulled.out, words));
  };
  says("not signed");
  EXPECT_EQ(Sign("example/Tiny", "alice").code, 0);
  const std::string id = KeyOf(ReadText(scratch_ / "alice.key")).public_key().id();
  says("signed by key " + id.substr(0, 16) +
       ", according to its unverified signatures; verify them with --public-key FILE");
  says("\"claimed_signers\": [\n  \"key " + id.substr(0, 16), {"--json"});
  says("TRUSTED by alice.pub (" + id.substr(0, 16) + ")", {"--trust", File("trust.yaml")});
  WriteText(fs::path(zoo_) / "signatures/example/Tiny/0.2.0/index.json", "{");
  says("its signatures cannot be read: ");
}

TEST_F(ZooSigning, OneAnswerTakesNoPolicy) {
  EXPECT_EQ(Sign("example/Tiny", "alice").code, 0);
  const auto by = [&](const std::string& who) {
    return Run({"verify", "example/Tiny@0.2.0", "--public-key", File(who + ".pub")}).code;
  };
  EXPECT_EQ(by("alice"), 0);
  EXPECT_EQ(by("bob"), 11);
  EXPECT_EQ(Run({"verify", "example/Tiny", "--public-key", File("alice.pub"), "--trust",
                 File("trust.yaml")})
                .code,
            2);
}

TEST_F(ZooSigning, TheSnapshotShowsWhatAMirrorHides) {
  Policy("rules: {\"example/*\": {keys: [alice.pub]}}\nsnapshot: {keys: [bob.pub]}\n");
  EXPECT_EQ(Sign("example/Tiny@0.1.0", "alice").code, 0);
  EXPECT_EQ(Sign("example/Tiny@0.2.0", "alice").code, 0);
  EXPECT_EQ(Trusted("example/Tiny@0.1.0").code, 10);
  EXPECT_EQ(Run({"snapshot", "--key", File("bob.key")}).code, 0);
  EXPECT_EQ(Trusted("example/Tiny@0.1.0").code, 0);
  fs::remove(fs::path(zoo_) / "entries/example/Tiny/0.2.0.json");
  fs::remove(fs::path(zoo_) / "entries/example/Tiny/latest.json");
  const ProgramExit hidden = Trusted("example/Tiny");
  EXPECT_TRUE(Exits(hidden, 14));
  EXPECT_TRUE(Says(hidden.out, "lists example/Tiny up to 0.2.0"));
}

// The generated site and verify agree, when repeated and after a yank, and both name the key file.
TEST_F(ZooSigning, TheSiteAndVerifyAgree) {
  for (const char* version : {"0.1.0", "0.2.0"})
    EXPECT_EQ(Sign(std::string("example/Tiny@") + version, "alice").code, 0);
  const auto agree = [&](int code, const std::string& page, const std::string& verified) {
    for (int call = 0; call < 2; ++call) {
      const ProgramExit site = Run({"site", File("site"), "--trust", File("trust.yaml")}),
                        verify = Trusted("example/Tiny");
      EXPECT_EQ(site.code, code) << site.all();
      EXPECT_EQ(verify.code, code) << verify.all();
      const std::string html = ReadText(scratch_ / "site/models/example/Tiny/index.html");
      EXPECT_TRUE(Says(html, page));
      EXPECT_TRUE(Says(verify.out, verified));
      EXPECT_EQ(html.find("UNTRUSTED") != html.npos, code == 14);
    }
  };
  EXPECT_EQ(Run({"yank", "example/Tiny@0.2.0", "--reason", "wrong template"}).code, 0);
  agree(0, "TRUSTED by alice.pub (", "TRUSTED: example/Tiny@0.1.0 by alice.pub (");
  fs::remove_all(fs::path(zoo_) / "yanked");  // latest still points to 0.1.0
  agree(14, "UNTRUSTED: example/Tiny@0.1.0: offered as the latest", "but 0.2.0 was seen before");
  fs::remove_all(fs::path(zoo_) / "signatures");
  fs::remove(scratch_ / "trust.seen.json");
  EXPECT_EQ(Run({"site", File("site"), "--trust", File("trust.yaml")}).code, 10);
}

TEST_F(ZooSigning, PublishWarnsOfNamesThatLookAlike) {
  EXPECT_TRUE(Exits(Run({"publish", File("1"), "--name", "examp1e/Tiny"}), 0,
                    "warning: examp1e/Tiny: its organisation looks like"));
  EXPECT_FALSE(Says(Run({"publish", File("1"), "--name", "someone/Tiny"}).err, "organisation"));
}

// If readers need a new snapshot, publish, sign and yank end with the command that makes it.
TEST_F(ZooSigning, TheSnapshotThatIsNeededIsSaid) {
  const std::string start = "now: oscar-zoo snapshot --zoo " + zoo_ + " --key ";
  const auto says = [&](const ProgramExit& ended, const std::string& words) {
    EXPECT_TRUE(Exits(ended, 0));
    EXPECT_EQ(ended.out.find("now: ") == std::string::npos, words.empty()) << ended.out;
    EXPECT_TRUE(Says(ended.out, words));
  };
  says(Sign("example/Tiny@0.1.0", "bob"), start + File("bob.key") + " --days 30\n");
  EXPECT_EQ(Run({"snapshot", "--key", File("bob.key"), "--days", "14"}).code, 0);
  says(Sign("example/Tiny@0.1.0", "alice"), "");  // the snapshot already lists it
  const std::string id = KeyOf(ReadText(scratch_ / "bob.key")).public_key().id(),
                    unknown = start + "KEY --days 14 # KEY: the private key of " +
                              id.substr(0, 16) + ", which signed the last one\n";
  says(Run({"publish", File("1"), "--version", "0.3.0"}), unknown);
  says(Sign("example/Tiny@0.3.0", "bob"), start + File("bob.key") + " --days 14\n");
  says(Run({"yank", "example/Tiny@0.2.0", "--reason", "x"}), unknown);
  EXPECT_EQ(Run({"snapshot", "--key", File("bob.key")}).code, 0);
  says(Sign("example/Tiny@0.2.0", "bob"), "");
}

TEST_F(ZooSigning, PublishWarnsOfTheSameBytes) {
  const Strings again = {"publish", File("1"), "--version", "0.9.0"};
  const std::string same =
      "warning: example/Tiny@0.9.0 has the same content as example/Tiny@0.1.0, which is already in "
      "the zoo";
  Strings dry = again;
  dry.push_back("--dry-run");
  for (const Strings& arguments : {dry, again}) {
    EXPECT_TRUE(Exits(Run(arguments), 0, same));
  }
  EXPECT_FALSE(Says(Run({"publish", File("2")}).err, "warning"));
}

// Replaces hf, the client of the Hugging Face Hub, with a script that copies uploads into the
// folder of a test server with the Hub's API.
TEST_F(ZooSigning, WhatIsPushedToTheHubIsPulledFromIt) {
  const fs::path hub = scratch_ / "hub", bin = scratch_ / "bin";
  fs::create_directories(hub / "me");
  fs::create_directories(bin);
  const FaultServer server(hub, scratch_);
  Strings environment = {"HF_ENDPOINT=" + server.Url("plain"), "HF_TOKEN=hf_secret",
                         "PATH=" + bin.string()};
  const auto push = [&](const Strings& what) {
    return RunProgram(OSCAR_ZOO_PROGRAM, ProgramStrings{"push", "hf:me/Tiny-oscar"} + what,
                      environment);
  };
  EXPECT_TRUE(Exits(push({File("1")}), 4, "pip install -U huggingface_hub"));
  WriteText(
      bin / "hf",
      "#!/bin/sh\nPATH=/bin:/usr/bin\n[ \"$1 $4 $5\" = 'upload . --commit-message' ] || exit 1\n"
      "echo \"uploaded $2: $6\"; rm -rf " +
          hub.string() + "/$2; cp -r \"$3\" " + hub.string() + "/$2\n");
  fs::permissions(bin / "hf", fs::perms::owner_all);
  EXPECT_TRUE(Exits(push({File("1"), "--dry-run"}), 0));
  EXPECT_TRUE(fs::is_empty(hub / "me"));
  const ProgramExit first = push({File("1")});
  EXPECT_TRUE(Exits(first, 0, "uploaded me/Tiny-oscar: example/Tiny@0.1.0, identity "));
  EXPECT_TRUE(Says(first.out, "pull it: oscar-zoo pull hf:me/Tiny-oscar"));
  EXPECT_TRUE(Says(push({File("1")}).out, "already pushed: example/Tiny@0.1.0"));
  const auto pull = [&](const std::string& what, const Strings& more = {}) {
    fs::remove_all(scratch_ / "pulled");
    return RunProgram(OSCAR_ZOO_PROGRAM, ProgramStrings{"pull", what, "-o", File("pulled")} + more,
                      environment);
  };
  EXPECT_EQ(pull("hf:me/Tiny-oscar").code, 0);
  EXPECT_TRUE(TreeBytes(scratch_ / "pulled") == TreeBytes(scratch_ / "1"));
  EXPECT_EQ(pull("hf:me/Tiny-oscar", {"--trust", File("trust.yaml")}).code, 10);
  // On the Hub, too, a published version never changes.
  EXPECT_EQ(push({File("2"), "--version", "0.1.0"}).code, 3);
  EXPECT_EQ(push({File("2"), "--name", "example/Other"}).code, 3);
  // A version that is pushed from a zoo includes its signatures.
  EXPECT_EQ(Sign("example/Tiny@0.2.0", "alice").code, 0);
  EXPECT_EQ(push({"example/Tiny@0.2.0", "--zoo", zoo_, "--ungated"}).code, 2);
  EXPECT_TRUE(Exits(push({"example/Tiny@0.2.0", "--zoo", zoo_}), 0));
  const ProgramExit trusted = pull("hf:me/Tiny-oscar", {"--trust", File("trust.yaml")});
  EXPECT_TRUE(Exits(trusted, 0));
  EXPECT_TRUE(Says(trusted.out, "example/Tiny@0.2.0"));
  EXPECT_TRUE(Says(trusted.out, "TRUSTED by alice.pub"));
  EXPECT_TRUE(Says(push({File("2"), "--version", "0.1.0"}).out, "already pushed"));
  WriteText(bin / "hf", "#!/bin/sh\nexit 1\n");
  EXPECT_TRUE(Exits(push({File("1")}), 3, "hf:me/Tiny-oscar was not uploaded"));
}

TEST_F(ZooSigning, APolicyThatIsNoneSaysWhere) {
  const struct {
    const char *what, *text;
  } cases[] = {
      {"unknown key \"kyes\"", "rules: {\"*\": {kyes: [alice.pub]}}"},
      {"given twice", "rules:\n  a/b: {level: off}\n  a/b: {level: warn}\n"},
      {"requires 1 signatures, but names only 0", "rules: {\"*\": {level: enforce}}"},
      {"expected off, warn or enforce", "rules: {\"*\": {level: maybe, keys: [alice.pub]}}"},
      {"expected ORG/MODEL", "rules: {\"Qwen*\": {keys: [alice.pub]}}"},
      {"letters, digits", "rules: {\"Qw\u0435n/*\": {keys: [alice.pub]}}"},
      {"X.Y.Z", "rules: {\"*\": {keys: [alice.pub], lowest: new}}"},
      {"1 to 9", "rules: {\"*\": {keys: [alice.pub], signatures: 0}}"},
      {"quote a name", "rules: {*: {keys: [alice.pub]}}"},
      {"anchors", "rules: {\"*\": &a {keys: [alice.pub]}}"},
      {"expected at least one rule", "memory: x"},
      {"expected 'key: value'", "- a"},
      {"nobody.pub", "rules: {\"*\": {keys: [nobody.pub]}}"},
      {"PEM public key", "rules: {\"*\": {keys: [alice.key]}}"},
      {"roots", "rules: {\"*\": {identities: [{name: a}]}}"},
      {"trust.yaml:2", "rules: [a"},
      {"expected one YAML document", "rules: {\"*\": {keys: [alice.pub]}}\n---\nrules: {}\n"},
  };
  for (const auto& [what, text] : cases) {
    Policy(text);
    const ProgramExit refused = Trusted("example/Tiny@0.1.0");
    EXPECT_TRUE(refused.code == 2 || refused.code == 3) << text << refused.all();
    EXPECT_TRUE(Says(refused.err, what)) << text;
  }
}

TEST_F(ZooSigning, WrongUseIsExitCode2) {
  const std::string key = File("alice.key");
  EXPECT_EQ(Run({"sign", "--key", key}).code, 2);
  EXPECT_EQ(Run({"sign", "example/Tiny"}).code, 2);
  EXPECT_EQ(Run({"sign", "example/Tiny", "--key", key, "--directory", zoo_}).code, 2);
  EXPECT_EQ(Run({"sign", "example/Tiny", "--key", key, "-o", File("x")}).code, 2);
  EXPECT_EQ(Run({"verify", "--directory", zoo_}).code, 2);
  EXPECT_EQ(Run({"sign", "example/T\u0456ny", "--key", key}).code, 2);  // a Cyrillic letter
  EXPECT_EQ(Sign("example/None", "alice").code, 3);
  EXPECT_EQ(Run({"sign", "example/Tiny", "--key", File("alice.pub")}).code, 3);
}

TEST_F(ZooSigning, ADirectoryIsSignedAndVerified) {
  const std::string model = File("1"), signature = File("model.sig");
  const auto zoo = [](const Strings& arguments) {
    return RunProgram(OSCAR_ZOO_PROGRAM, arguments);
  };
  EXPECT_EQ(zoo({"sign", "--directory", model, "--key", File("alice.key"), "-o", signature}).code,
            0);
  const Strings verify = {"verify",       "--directory",    model, "--signature", signature,
                          "--public-key", File("alice.pub")};
  EXPECT_EQ(zoo(verify).code, 0) << zoo(verify).all();
  WriteText(fs::path(model) / "more.txt", "x");
  EXPECT_EQ(zoo(verify).code, 13);
  Strings ignoring = verify;
  ignoring.insert(ignoring.end(), {"--ignore", "more.txt"});
  EXPECT_EQ(zoo(ignoring).code, 0);
  WriteText(fs::path(model) / "README.md", "x");
  EXPECT_EQ(zoo(verify).code, 12);
}

TEST_F(ZooSigning, KilledOrFailingAtAnyStepNothingIsHalfSigned) {
  ASSERT_EQ(Sign("example/Tiny@0.1.0", "alice").code, 0);
  const fs::path fresh = scratch_ / "fresh";
  fs::copy(zoo_, fresh, fs::copy_options::recursive);
  const auto faults = [&](const std::string& setting) {
    return Strings{"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_DIR=" + zoo_, setting};
  };
  ASSERT_EQ(Sign("example/Tiny@0.1.0", "bob", faults("OSCAR_FAULT_COUNT=" + File("count"))).code,
            0);
  const long calls = std::stol(ReadText(scratch_ / "count"));
  ASSERT_GT(calls, 6);
  Policy("rules: {\"*\": {keys: [alice.pub, bob.pub], signatures: 2}}\n");
  for (const char* fault :
       {"OSCAR_FAULT_KILL_AT=", "OSCAR_FAULT_ENOSPC_AT=", "OSCAR_FAULT_ERRNO_AT="}) {
    for (long at = 1; at <= calls; ++at) {
      SCOPED_TRACE(fault + std::to_string(at));
      fs::remove_all(zoo_);
      fs::copy(fresh, zoo_, fs::copy_options::recursive);
      Strings environment = faults(fault + std::to_string(at));
      environment.push_back("OSCAR_FAULT_ERRNO=" + std::to_string(EIO));
      const ProgramExit ended = Sign("example/Tiny@0.1.0", "bob", environment);
      EXPECT_TRUE(ended.signal == SIGKILL || ended.code == 4 || ended.code == 0) << ended.all();
      // The earlier signature still verifies, and the zoo is sound.
      EXPECT_EQ(Run({"verify", "example/Tiny@0.1.0", "--public-key", File("alice.pub")}).code, 0);
      ASSERT_EQ(Sign("example/Tiny@0.1.0", "bob").code, 0);
      EXPECT_EQ(Trusted("example/Tiny@0.1.0").code, 0);
      for (const auto& [file, bytes] : TreeBytes(zoo_)) EXPECT_FALSE(Says(file, ".tmp-"));
    }
  }
}

}  // namespace
}  // namespace oscar
