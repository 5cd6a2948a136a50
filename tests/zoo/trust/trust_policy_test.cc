// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the attacks on a reader of a zoo, by name (The Update Framework, specification 1.0.33,
// section 1.5.2). Each attack is refused with the right exit code, and honest zoos are accepted.
#include "zoo/trust/trust_policy.h"

#include <gtest/gtest.h>

#include <functional>

#include "capture/files/digest.h"
#include "tests/zoo/signing/sample_keys.h"
#include "zoo/signing/model_statement.h"
#include "zoo/signing/trust_error.h"
#include "zoo/trust/look_alike.h"

namespace oscar {
namespace {

constexpr int64_t kNow = 1'800'000'000, kDay = 86'400;

ZooEntry EntryOf(const std::string& name, const ZooVersion& version, const std::string& content) {
  ZooEntry entry;
  entry.name = ParseZooName(name, "test");
  entry.version = version;
  entry.identity = Sha256Hex("manifest" + content);
  entry.files = {{"manifest.json", {entry.identity, 8}},
                 {"rotations.safetensors", {Sha256Hex("rotations" + content), 9}}};
  return entry;
}

// Signs like AddSignature; `edit` changes the statement before it is signed.
std::string Signed(const ZooEntry& entry, const Signer& signer,
                   const std::function<void(ModelStatement&)>& edit = {}) {
  ModelStatement statement;
  statement.subject = entry.name.text() + "@" + entry.version.text();
  for (const auto& [file, digest] : entry.files) statement.files[file] = digest.sha256;
  if (edit) edit(statement);
  return SignedBundleText(StatementText(statement), signer);
}

class Trust : public testing::Test {
 protected:
  Trust() { policy_.rules["example/*"].keys = {alice_.key.public_key()}; }

  TrustVerdict Judged(const ZooEntry& entry, const std::vector<std::string>& bundles,
                      bool latest = true) {
    const SnapshotCheck snapshot = CheckSnapshot(policy_, memory_, snapshot_file_, kNow);
    return Judge(policy_, memory_,
                 {.entry = entry, .bundles = bundles, .latest = latest, .snapshot = snapshot});
  }
  void ExpectCode(ExitCode code, const ZooEntry& entry, const std::vector<std::string>& bundles,
                  bool latest = true) {
    const TrustVerdict verdict = Judged(entry, bundles, latest);
    EXPECT_EQ(static_cast<int>(verdict.code), static_cast<int>(code)) << verdict.problem;
    EXPECT_EQ(verdict.refused(), code != ExitCode::kDone);
    EXPECT_EQ(verdict.problem.empty(), code == ExitCode::kDone);
  }

  // Offers a snapshot of `entries`, signed by `signer`.
  void Offer(const std::vector<ZooEntry>& entries, const Signer& signer, int64_t created = kNow,
             int64_t days = 30) {
    Snapshot snapshot{created, created + days * kDay, {}};
    for (const ZooEntry& entry : entries)
      snapshot.entries[entry.name.text()][entry.version] = entry.identity;
    snapshot_file_ = SignedBundleText(SnapshotText(snapshot), signer);
  }

  const Signer alice_ = NewSigner(), bob_ = NewSigner(), mallory_ = NewSigner();
  const ZooEntry first_ = EntryOf("example/Tiny", {0, 1, 0}, "a"),
                 second_ = EntryOf("example/Tiny", {0, 2, 0}, "b");
  TrustPolicy policy_;
  TrustMemory memory_;
  std::optional<std::string> snapshot_file_;
};

TEST_F(Trust, WhatAliceSignedIsBelieved) {
  const TrustVerdict verdict = Judged(first_, {Signed(first_, alice_)});
  EXPECT_EQ(verdict.word(), "TRUSTED") << verdict.problem;
  EXPECT_EQ(verdict.signers, (std::vector<std::string>{alice_.key.public_key().id()}));
}

TEST_F(Trust, AttackStrippedSignaturesAreUnsigned) {
  ExpectCode(TrustExit::kUnsigned, first_, {});
  EXPECT_EQ(Judged(first_, {}).word(), "UNSIGNED");
}

TEST_F(Trust, AttackArbitraryInstallSignedByNobodyKnown) {
  ExpectCode(TrustExit::kWrongKey, first_, {Signed(first_, mallory_)});
  EXPECT_EQ(Judged(first_, {Signed(first_, mallory_)}).word(), "UNTRUSTED");
}

// Mallory's signature has the hint of Alice's key.
TEST_F(Trust, AttackKeySubstitutionByTheHint) {
  Json bundle = Json::parse(Signed(first_, mallory_));
  bundle["verificationMaterial"]["publicKey"]["hint"] = alice_.key.public_key().id();
  ExpectCode(TrustExit::kAltered, first_, {bundle.dump()});
}

TEST_F(Trust, AttackAlteredFileOfASignedVersion) {
  ZooEntry altered = first_;
  altered.files["rotations.safetensors"].sha256 = Sha256Hex("other rotations");
  ExpectCode(TrustExit::kAltered, altered, {Signed(first_, alice_)});
}

TEST_F(Trust, AttackExtraFileInASignedVersion) {
  ZooEntry more = first_;
  more.files["evil.bin"] = {Sha256Hex("evil"), 4};
  ExpectCode(TrustExit::kExtraFile, more, {Signed(first_, alice_)});
}

TEST_F(Trust, AttackMissingFileOfASignedVersion) {
  ZooEntry fewer = first_;
  fewer.files.erase("rotations.safetensors");
  ExpectCode(TrustExit::kAltered, fewer, {Signed(first_, alice_)});
}

// Files that were signed as one version are offered as another version or under another name.
TEST_F(Trust, AttackMixAndMatchOfVersionsAndNames) {
  ZooEntry as_newer = first_;
  as_newer.version = {9, 0, 0};
  ExpectCode(TrustExit::kAltered, as_newer, {Signed(first_, alice_)});
  ZooEntry as_other = first_;
  as_other.name = {"example", "Large"};
  ExpectCode(TrustExit::kAltered, as_other, {Signed(first_, alice_)});
}

// The signature of a directory does not cover a name in a zoo.
TEST_F(Trust, AttackReplayOfADirectorysSignature) {
  ExpectCode(TrustExit::kAltered, first_,
             {Signed(first_, alice_, [](ModelStatement& s) { s.subject = "model"; })});
}

TEST_F(Trust, AttackRollbackOfWhatWasSeen) {
  memory_.Remember(second_);
  ExpectCode(TrustExit::kTooOld, first_, {Signed(first_, alice_)});
  // An older version may still be requested by its number.
  ExpectCode(ExitCode::kDone, first_, {Signed(first_, alice_)}, /*latest=*/false);
  memory_.Remember(first_);  // still remembers second_
  ExpectCode(TrustExit::kTooOld, first_, {Signed(first_, alice_)});
}

TEST_F(Trust, AttackRollbackBelowThePolicysLowest) {
  policy_.rules["example/*"].lowest = ZooVersion{0, 2, 0};
  ExpectCode(TrustExit::kTooOld, first_, {Signed(first_, alice_)}, /*latest=*/false);
  ExpectCode(ExitCode::kDone, second_, {Signed(second_, alice_)});
}

// A version that was seen must never change, even if a stolen key signs the change.
TEST_F(Trust, AttackReplacedVersionUnderAStolenKey) {
  memory_.Remember(first_);
  const ZooEntry replaced = EntryOf("example/Tiny", {0, 1, 0}, "evil");
  ExpectCode(TrustExit::kAltered, replaced, {Signed(replaced, alice_)});
}

// If two signatures are required, one stolen key is not enough, even if it signs twice.
TEST_F(Trust, AttackKeyCompromiseBelowTheThreshold) {
  TrustRule& rule = policy_.rules["example/*"];
  rule.keys.push_back(bob_.key.public_key());
  rule.signatures = 2;
  ExpectCode(TrustExit::kUnsigned, first_, {Signed(first_, alice_)});
  ExpectCode(TrustExit::kUnsigned, first_, {Signed(first_, alice_), Signed(first_, alice_)});
  ExpectCode(TrustExit::kWrongKey, first_, {Signed(first_, alice_), Signed(first_, mallory_)});
  ExpectCode(ExitCode::kDone, first_, {Signed(first_, alice_), Signed(first_, bob_)});
}

// Signatures of unknown keys and invalid bytes are not accepted, and they do not hide a good
// signature.
TEST_F(Trust, AttackFloodOfOtherSignatures) {
  const std::string good = Signed(first_, alice_);
  ExpectCode(ExitCode::kDone, first_, {"", "{}", Signed(first_, mallory_), good});
  ExpectCode(TrustExit::kAltered, first_, {"{}"});
  ExpectCode(TrustExit::kAltered, first_,
             {Signed(first_, mallory_), Signed(second_, alice_), Signed(first_, mallory_)});
}

TEST_F(Trust, AttackFreezeByAnExpiredSnapshot) {
  policy_.snapshot = policy_.rules["example/*"];
  Offer({first_}, alice_, kNow - 31 * kDay);
  ExpectCode(TrustExit::kTooOld, first_, {Signed(first_, alice_)});
  Offer({first_}, alice_, kNow - 29 * kDay);
  ExpectCode(ExitCode::kDone, first_, {Signed(first_, alice_)});
}

TEST_F(Trust, AttackHiddenNewerVersion) {
  policy_.snapshot = policy_.rules["example/*"];
  Offer({first_, second_}, alice_);
  ExpectCode(TrustExit::kTooOld, first_, {Signed(first_, alice_)});
  ExpectCode(ExitCode::kDone, first_, {Signed(first_, alice_)}, /*latest=*/false);
  ExpectCode(ExitCode::kDone, second_, {Signed(second_, alice_)});
}

TEST_F(Trust, AttackOlderSnapshotThanSeen) {
  policy_.snapshot = policy_.rules["example/*"];
  memory_.snapshots_unix[alice_.key.public_key().id()] = kNow - 1 * kDay;
  Offer({first_}, alice_, kNow - 2 * kDay);
  ExpectCode(TrustExit::kTooOld, first_, {Signed(first_, alice_)});
  Offer({first_}, alice_, kNow - 1 * kDay);
  ExpectCode(ExitCode::kDone, first_, {Signed(first_, alice_)});
}

// A date far in the future would make every honest snapshot look old.
TEST_F(Trust, AttackFastForwardOfTheSnapshot) {
  policy_.snapshot = policy_.rules["example/*"];
  Offer({first_}, alice_, kNow + 400 * kDay);
  ExpectCode(TrustExit::kAltered, first_, {Signed(first_, alice_)});
}

TEST_F(Trust, AttackSnapshotStrippedOrBySomebodyElse) {
  policy_.snapshot = policy_.rules["example/*"];
  ExpectCode(TrustExit::kUnsigned, first_, {Signed(first_, alice_)});
  Offer({first_}, mallory_);
  ExpectCode(TrustExit::kWrongKey, first_, {Signed(first_, alice_)});
  snapshot_file_ = Signed(first_, alice_);  // signed by Alice, but not a snapshot
  ExpectCode(TrustExit::kAltered, first_, {Signed(first_, alice_)});
}

TEST_F(Trust, AttackMixAndMatchAgainstTheSnapshot) {
  policy_.snapshot = policy_.rules["example/*"];
  Offer({second_}, alice_);
  ExpectCode(TrustExit::kUnsigned, first_, {Signed(first_, alice_)}, /*latest=*/false);
  Offer({EntryOf("example/Tiny", {0, 1, 0}, "other")}, alice_);
  ExpectCode(TrustExit::kAltered, first_, {Signed(first_, alice_)});
}

TEST_F(Trust, AttackNamesThatLookLikeTrustedOnes) {
  for (const char* name : {"Example/Tiny", "examp1e/Tiny", "exampIe/Tiny", "EXAMPLE/Tiny"}) {
    const ZooEntry entry = EntryOf(name, {0, 1, 0}, "a");
    ExpectCode(TrustExit::kLookAlike, entry, {});
    ExpectCode(TrustExit::kLookAlike, entry, {Signed(entry, alice_)});
  }
  // A policy with rules for both names accepts both.
  policy_.rules["examp1e/*"].level = TrustLevel::kOff;
  EXPECT_EQ(Judged(EntryOf("examp1e/Tiny", {0, 1, 0}, "a"), {}).word(), "UNCHECKED");
  policy_.rules = {{"*", policy_.rules["example/*"]}};
  memory_.Remember(first_);
  for (const char* name : {"example/tiny", "example/T1ny", "exarnple/Tiny"}) {
    const ZooEntry entry = EntryOf(name, {0, 1, 0}, "a");
    ExpectCode(TrustExit::kLookAlike, entry, {Signed(entry, alice_)});
  }
  const ZooEntry other = EntryOf("example/Tiny2", {0, 1, 0}, "a");
  ExpectCode(ExitCode::kDone, other, {Signed(other, alice_)});
}

TEST(LookAlike, NamesByTheirLook) {
  EXPECT_TRUE(LooksLike("Qwen/Qwen3-8B", "qvven/QWEN3_8b"));
  EXPECT_TRUE(LooksLike("meta-llama/Llama-3.1-8B", "meta-IIama/L1ama-3-1-8B"));
  EXPECT_TRUE(LooksLike("G00gle/x", "Google/*"));
  EXPECT_FALSE(LooksLike("Google/x", "Google/*"));
  EXPECT_FALSE(LooksLike("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"));
  EXPECT_FALSE(LooksLike("Qwen/Qwen3-8B", "Qwen/Qwen3-4B"));
  EXPECT_FALSE(LooksLike("anything/else", "*"));
}

TEST(LookAlike, ANewNameThatMayBeTakenForAnotherIsWarnedAbout) {
  const std::vector<ZooName> known = {
      {"Qwen", "Qwen3-8B"}, {"meta-llama", "Llama-3.1-8B"}, {"ab", "x"}};
  const auto warned = [&](const char* name) {
    return LookAlikeWarning(ParseZooName(name, "test"), known);
  };
  EXPECT_EQ(
      warned("qwen/Other"),
      "qwen/Other: its organisation looks like that of Qwen/Qwen3-8B; readers may confuse the two");
  for (const char* name : {"meta_llama/x", "meta-1lama/x", "meta-lama/x", "Qwem/x", "Qewn/x",
                           "Qwenn/x", "Qwen/qwen3-8b", "Qwen/Qwen3_8B", "Qwen/Qwem3-8B",
                           "Qwen/Qwen38B", "meta-llama/L1ama-3.1-8B"})
    EXPECT_NE(warned(name), "") << name;
  for (const char* name : {"Qwen/Qwen3-8B", "Qwen/Qwen3-4B", "Qwen/Qwen3-80B", "Qwen/Qwen2-8B",
                           "Qwen/Other", "me/Qwen3-8B", "ac/x", "mistral/x"})
    EXPECT_EQ(warned(name), "") << name;
}

TEST_F(Trust, UnderWarnItIsSaidAndNotRefused) {
  policy_.rules["example/*"].level = TrustLevel::kWarn;
  const TrustVerdict verdict = Judged(first_, {});
  EXPECT_FALSE(verdict.refused());
  EXPECT_EQ(verdict.word(), "UNSIGNED");
}

TEST_F(Trust, TheMostExactRuleHolds) {
  policy_.rules["*"].level = TrustLevel::kOff;
  policy_.rules["example/Tiny"].keys = {bob_.key.public_key()};
  ExpectCode(TrustExit::kWrongKey, first_, {Signed(first_, alice_)});
  ExpectCode(ExitCode::kDone, first_, {Signed(first_, bob_)});
  EXPECT_EQ(Judged(EntryOf("other/Tiny", {0, 1, 0}, "a"), {}).word(), "UNCHECKED");
}

TEST_F(Trust, AnIdentityIsANameUnderItsRoot) {
  const Issuer root = NewRoot(), other_root = NewRoot();
  TrustRule& rule = policy_.rules["example/*"];
  rule.keys.clear();
  rule.identities = {{"signer@example.org", RootsOf(root)}};
  const auto by = [&](const Issuer& issuer, const std::string& names) {
    return Signed(first_, CertifiedSigner(Issued(issuer, {.names = names})));
  };
  const TrustVerdict verdict = Judged(first_, {by(root, "email:signer@example.org")});
  EXPECT_EQ(verdict.signers, (std::vector<std::string>{"signer@example.org"})) << verdict.problem;
  ExpectCode(TrustExit::kWrongKey, first_, {by(root, "email:other@example.org")});
  ExpectCode(TrustExit::kWrongKey, first_, {by(other_root, "email:signer@example.org")});
  ExpectCode(TrustExit::kWrongKey, first_, {Signed(first_, alice_)});
}

TEST_F(Trust, MemoryIsReadAsWritten) {
  memory_.Remember(second_);
  memory_.Remember(Snapshot{kNow, kNow + kDay, {}}, "signer");
  memory_.Remember(Snapshot{kNow - 1, kNow + kDay, {}}, "signer");
  EXPECT_EQ(memory_.snapshots_unix.at("signer"), kNow);
  const Json json = MemoryToJson(memory_);
  EXPECT_EQ(MemoryToJson(ParseMemory(json.dump(), "m")), json);
  EXPECT_THROW(ParseMemory("{}", "m"), InputError);
  EXPECT_THROW(ParseMemory(json.dump().substr(1), "m"), InputError);
}

TEST_F(Trust, SnapshotsAreReadAsWritten) {
  const Snapshot snapshot{1, 2, {{"example/Tiny", {{{0, 1, 0}, Sha256Hex("x")}}}}};
  const std::string text = SnapshotText(snapshot);
  EXPECT_EQ(SnapshotText(ParseSnapshot(text, "s")), text);
  for (const char* name : {"example/Tiny", "example/Tiny@1", "../x@0.1.0", "@0.1.0"}) {
    Json json = Json::parse(text);
    json["subject"][0]["name"] = name;
    EXPECT_THROW(ParseSnapshot(json.dump(), "s"), InputError) << name;
  }
  Json twice = Json::parse(text);
  twice["subject"].push_back(twice["subject"][0]);
  EXPECT_THROW(ParseSnapshot(twice.dump(), "s"), InputError);
}

}  // namespace
}  // namespace oscar
