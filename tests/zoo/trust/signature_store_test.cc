// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests signatures beside the entries: several signers add them at any time, and versions never
// change.
#include "zoo/trust/signature_store.h"

#include <gtest/gtest.h>

#include "linalg/base/error.h"
#include "tests/support/test_data.h"
#include "tests/zoo/sample_zoo.h"
#include "tests/zoo/signing/sample_keys.h"
#include "zoo/keep/publish.h"
#include "zoo/keep/verify.h"
#include "zoo/signing/model_files.h"
#include "zoo/trust/trust_policy.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

class SignatureStore : public testing::Test {
 protected:
  SignatureStore() : scratch_(TestScratch("signatures")), zoo_(NewZoo(scratch_ / "zoo")) {
    WriteValidated(scratch_ / "a");
    entry_ = Publish(zoo_, scratch_ / "a", {}, {}).entry;
  }
  std::vector<std::string> Texts() { return ReadSignatures(zoo_, entry_.name, entry_.version); }
  fs::path Index() {
    return SignatureFolder(zoo_.path(), entry_.name, entry_.version) / kSignatureIndexFile;
  }

  fs::path scratch_;
  Zoo zoo_;
  ZooEntry entry_;
};

TEST_F(SignatureStore, SeveralAreAddedAndTheVersionStaysAsItWas) {
  EXPECT_TRUE(Texts().empty());
  const auto before = TreeBytes(zoo_.path());
  const Signer alice = NewSigner(), bob = NewSigner();
  const std::string sha256 = AddSignature(zoo_, entry_, alice, {});
  AddSignature(zoo_, entry_, bob, {});
  const auto after = TreeBytes(zoo_.path());
  EXPECT_EQ(after.size(), before.size() + 3);  // two signatures, one index
  for (const auto& [file, bytes] : before) EXPECT_EQ(after.at(file), bytes) << file;
  // Readers over HTTP rely on exactly this layout.
  EXPECT_EQ(
      Json::parse(ReadText(zoo_.path() / "signatures/example/Tiny/0.1.0/index.json"))
          .at("signatures")
          .at(sha256),
      fs::file_size(zoo_.path() / "signatures/example/Tiny/0.1.0" / (sha256 + ".sigstore.json")));
  TrustPolicy policy;
  TrustRule& rule = policy.rules["example/Tiny"];
  rule.keys = {alice.key.public_key(), bob.key.public_key()};
  rule.signatures = 2;
  const std::vector<std::string> texts = Texts();
  const TrustVerdict verdict =
      Judge(policy, {}, {.entry = entry_, .bundles = texts, .latest = true, .snapshot = {}});
  EXPECT_EQ(verdict.word(), "TRUSTED") << verdict.problem;
  EXPECT_TRUE(Verify(zoo_, std::nullopt).problems.empty());
  // A version's signature is also valid for the artifact's directory.
  const SignedBundle bundle = ParseBundle(texts[0], "b");
  CheckModel(scratch_ / "a", ParseStatement(bundle.payload, "b"), {});
}

TEST_F(SignatureStore, WhatACutOffSignerLeftIsTakenUpByTheNext) {
  const Signer alice = NewSigner(), bob = NewSigner();
  const std::string sha256 = AddSignature(zoo_, entry_, alice, {});
  fs::remove(Index());  // as if interrupted before writing it
  WriteText(Index().parent_path() / "x.sigstore.json.tmp-1-0", "half");
  EXPECT_TRUE(Texts().empty());
  AddSignature(zoo_, entry_, bob, {});
  EXPECT_EQ(Texts().size(), 2u);
  EXPECT_FALSE(fs::exists(Index().parent_path() / "x.sigstore.json.tmp-1-0"));
}

TEST_F(SignatureStore, AHostileIndexIsRefused) {
  const std::string sha256 = AddSignature(zoo_, entry_, NewSigner(), {});
  const std::string good = ReadText(Index());
  const auto refused = [&](const std::string& index) {
    WriteText(Index(), index);
    EXPECT_THROW(Texts(), InputError) << index;
  };
  const auto with = [&](const std::string& name, const Json& size) {
    Json json = Json::parse(good);
    json["signatures"] = {{name, size}};
    return json.dump();
  };
  refused(with("../../../../entries/example/Tiny/0.1.0", 10));
  refused(with(std::string(64, 'A'), 10));
  refused(with(std::string(64, 'a'), 10));  // no such signature
  refused(with(sha256, 10));
  refused(with(sha256, -1));
  refused(with(sha256, 1 << 21));
  refused(with(sha256, "10"));
  Json many = Json::parse(good);
  for (int i = 0; i < 65; ++i) many["signatures"][Sha256Hex(std::to_string(i))] = 1;
  refused(many.dump());
  refused("");
  WriteText(Index(), good);
  WriteText(SignaturePath(zoo_.path(), entry_.name, entry_.version, sha256), "other");
  EXPECT_THROW(Texts(), InputError);
}

TEST_F(SignatureStore, TheSnapshotIsOfEveryVersion) {
  WriteValidated(scratch_ / "b", 2);
  const ZooEntry second = Publish(zoo_, scratch_ / "b", {}, {}).entry;
  EXPECT_FALSE(ReadSnapshotFile(zoo_));
  const Signer signer = NewSigner();
  WriteSnapshot(zoo_, SnapshotOf(zoo_, 10, 20), signer);
  const SignedBundle bundle = ParseBundle(*ReadSnapshotFile(zoo_), "s");
  CheckSignedWith(bundle, signer.key.public_key(), "s");
  const Snapshot read = ParseSnapshot(bundle.payload, "s");
  EXPECT_EQ(read.created_unix, 10);
  EXPECT_EQ(read.expires_unix, 20);
  EXPECT_EQ(read.entries.at("example/Tiny"),
            (std::map<ZooVersion, std::string>{{entry_.version, entry_.identity},
                                               {second.version, second.identity}}));
}

}  // namespace
}  // namespace oscar
