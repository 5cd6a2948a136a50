// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs oms-conformance on a pack of signed directories with known verdicts, and cross-checks
// signatures with the reference implementation, the PyPI package model-signing.
#include <gtest/gtest.h>

#include "linalg/base/error.h"
#include "tests/support/run_program.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"
#include "tests/zoo/sample_zoo.h"
#include "tests/zoo/signing/sample_keys.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

using Strings = ProgramStrings;

ProgramExit Oms(const Strings& arguments) { return RunProgram(OSCAR_OMS_CONFORMANCE, arguments); }

TEST(OmsConformance, KeylessIsRefusedByName) {
  for (const char* verb : {"verify-model", "sign-model"}) {
    EXPECT_TRUE(
        Exits(Oms({verb, "--method", "sigstore", "--model-path", "x",
                   std::string(verb) == "sign-model" ? "--output-bundle" : "--bundle", "y"}),
              2, "keyless"));
  }
}

TEST(OmsConformance, EveryCaseOfThePackGetsItsVerdict) {
  OSCAR_PACK_OR_SKIP(pack, "oms");
  const Json cases = Json::parse(ReadText(pack / "cases.json")).at("cases");
  ASSERT_GT(cases.size(), 30u);
  for (const Json& one : cases) {
    const auto at = [&](const Json& path) { return (pack / path.get<std::string>()).string(); };
    Strings arguments = {"verify-model",    "--method", one.at("method"),    "--model-path",
                         at(one.at("dir")), "--bundle", at(one.at("bundle"))};
    if (one.contains("public_key"))
      arguments.insert(arguments.end(), {"--public-key", at(one.at("public_key"))});
    for (const Json& file : one.value("chain", Json::array()))
      arguments.insert(arguments.end(), {"--cert-chain", at(file)});
    for (const Json& path : one.value("ignore", Json::array())) {
      arguments.insert(arguments.end(),
                       {"--ignore-paths", at(one.at("dir")) + "/" + path.get<std::string>()});
    }
    if (one.value("ignore_unsigned", false)) arguments.push_back("--ignore-unsigned-files");
    const ProgramExit exit = Oms(arguments);
    EXPECT_EQ(exit.code == 0, one.at("verdict") == "accept") << one.at("name") << exit.all();
    EXPECT_NE(exit.code, -1) << one.at("name");
  }
}

TEST(OmsConformance, SignsWithEveryKeyOfThePack) {
  OSCAR_PACK_OR_SKIP(pack, "oms");
  const std::string bundle = (TestScratch("oms") / "model.sig").string();
  const std::string dir = (pack / "key-secp521r1/dir").string();
  const auto file = [&](const std::string& name) { return (pack / "keys" / name).string(); };
  for (const std::string curve : {"prime256v1", "secp384r1", "secp521r1"}) {
    EXPECT_EQ(Oms({"sign-model", "--method", "key", "--model-path", dir, "--output-bundle", bundle,
                   "--private-key", file(curve + ".key")})
                  .code,
              0);
    const auto verified = [&](const std::string& key) {
      return Oms({"verify-model", "--method", "key", "--model-path", dir, "--bundle", bundle,
                  "--public-key", file(key)})
                 .code == 0;
    };
    EXPECT_TRUE(verified(curve + ".pub"));
    EXPECT_FALSE(verified("other.pub"));
  }
  EXPECT_EQ(Oms(Words("sign-model --method certificate --model-path % --output-bundle % "
                      "--private-key % --signing-cert % --cert-chain % --cert-chain %",
                      {dir, bundle, file("leaf.key"), file("leaf.crt"), file("inter.crt"),
                       file("root.crt")}))
                .code,
            0);
  EXPECT_EQ(Oms({"verify-model", "--method", "certificate", "--model-path", dir, "--bundle", bundle,
                 "--cert-chain", file("root.crt")})
                .code,
            0);
}

TEST(OmsConformance, VectorsOfTheSpecification) {
  OSCAR_PACK_OR_SKIP(pack, "oms/spec-v1.0/test-vectors/v1.0");
  for (const char* name : {"valid/key.bundle.json", "valid/certificate.bundle.json"})
    EXPECT_NO_THROW(ParseBundle(ReadText(pack / name), name)) << name;
  for (const auto& file : fs::directory_iterator(pack / "invalid"))
    EXPECT_THROW(ParseBundle(ReadText(file.path()), "b"), InputError) << file.path();
  EXPECT_TRUE(Says(
      ErrorOf<InputError>([&] { ParseBundle(ReadText(pack / "valid/sigstore.bundle.json"), "b"); }),
      "keyless"));
}

class ModelSigning : public testing::Test {
 protected:
  ModelSigning() : scratch_(TestScratch("model-signing")) {
    WriteValidated(scratch_ / "1");
    const std::string key = NewKeyPem();
    WriteText(scratch_ / "alice.key", key);
    WriteText(scratch_ / "alice.pub", PublicPem(key));
  }
  void SetUp() override {
    if (Theirs({"--version"}).code != 0) OSCAR_SKIP_WITHOUT_PACKAGE("model-signing");
    const Issuer root = NewRoot(), leaf = Issued(root, {});
    WriteText(scratch_ / "leaf.key", leaf.key);
    WriteText(scratch_ / "leaf.crt", leaf.certificate);
    WriteText(scratch_ / "root.crt", root.certificate);
  }
  std::string File(const std::string& name) const { return (scratch_ / name).string(); }

  // Runs the reference implementation's command line.
  static ProgramExit Theirs(Strings arguments) {
    arguments.insert(arguments.begin(),
                     {"-u", "LD_PRELOAD", std::string("PYTHONPATH=") + OSCAR_CONSUMERS,
                      OSCAR_PYTHON, "-m", "model_signing"});
    return RunProgram("/usr/bin/env", arguments);
  }
  ProgramExit TheyVerify(const Strings& more = {}) const {
    return Theirs(ProgramStrings{"verify", method_, File("1"), "--signature", File("model.sig"),
                                 method_ == "key" ? "--public_key" : "--certificate_chain",
                                 File(method_ == "key" ? "alice.pub" : "root.crt")} +
                  more);
  }
  ProgramExit WeVerify(const Strings& more = {}) const {
    return Oms(ProgramStrings{"verify-model", "--method", method_, "--model-path", File("1"),
                              "--bundle", File("model.sig"),
                              method_ == "key" ? "--public-key" : "--cert-chain",
                              File(method_ == "key" ? "alice.pub" : "root.crt")} +
               more);
  }
  // Expects both implementations to accept the signed model and to refuse every altered one.
  void ExpectBothVerify() {
    EXPECT_EQ(TheyVerify().code, 0) << TheyVerify().all();
    EXPECT_EQ(WeVerify().code, 0) << WeVerify().all();
    const fs::path extra = scratch_ / "1/extra.bin", card = scratch_ / "1/README.md";
    WriteText(extra, "x");
    EXPECT_NE(TheyVerify().code, 0);
    EXPECT_EQ(WeVerify().code, 13);
    EXPECT_EQ(TheyVerify({"--ignore-paths", extra.string()}).code, 0);
    EXPECT_EQ(WeVerify({"--ignore-paths", extra.string()}).code, 0);
    EXPECT_EQ(TheyVerify({"--ignore_unsigned_files"}).code, 0);
    EXPECT_EQ(WeVerify({"--ignore-unsigned-files"}).code, 0);
    fs::remove(extra);
    const std::string text = ReadText(card);
    WriteText(card, text + "x");
    EXPECT_NE(TheyVerify().code, 0);
    EXPECT_EQ(WeVerify().code, 12);
    fs::remove(card);
    EXPECT_NE(TheyVerify().code, 0);
    EXPECT_EQ(WeVerify().code, 12);
    WriteText(card, text);
  }

  const fs::path scratch_;
  std::string method_ = "key";
};

TEST_F(ModelSigning, VerifiesOurKeySignatures) {
  EXPECT_EQ(Oms({"sign-model", "--method", "key", "--model-path", File("1"), "--output-bundle",
                 File("model.sig"), "--private-key", File("alice.key")})
                .code,
            0);
  ExpectBothVerify();
}

TEST_F(ModelSigning, VerifiesOurCertificateSignatures) {
  method_ = "certificate";
  EXPECT_EQ(Oms(Words("sign-model --method certificate --model-path % --output-bundle % "
                      "--private-key % --signing-cert % --cert-chain %",
                      {File("1"), File("model.sig"), File("leaf.key"), File("leaf.crt"),
                       File("root.crt")}))
                .code,
            0);
  ExpectBothVerify();
}

TEST_F(ModelSigning, ItsKeySignaturesAreVerifiedByUs) {
  EXPECT_EQ(Theirs({"sign", "key", File("1"), "--signature", File("model.sig"), "--private_key",
                    File("alice.key")})
                .code,
            0);
  ExpectBothVerify();
}

TEST_F(ModelSigning, ItsCertificateSignaturesAreVerifiedByUs) {
  method_ = "certificate";
  EXPECT_EQ(Theirs({"sign", "certificate", File("1"), "--signature", File("model.sig"),
                    "--private_key", File("leaf.key"), "--signing_certificate", File("leaf.crt"),
                    "--certificate_chain", File("root.crt")})
                .code,
            0);
  ExpectBothVerify();
}

// The signature that a zoo stores for a version verifies the pulled artifact.
TEST_F(ModelSigning, VerifiesAPulledVersion) {
  const auto zoo = [&](Strings arguments) {
    arguments.insert(arguments.end(), {"--zoo", File("zoo")});
    return RunProgram(OSCAR_ZOO_PROGRAM, arguments);
  };
  EXPECT_EQ(zoo({"init"}).code, 0);
  EXPECT_EQ(zoo({"publish", File("1")}).code, 0);
  const ProgramExit made =
      zoo({"sign", "example/Tiny@0.1.0", "--key", File("alice.key"), "--json"});
  EXPECT_TRUE(Exits(made, 0));
  fs::copy(Json::parse(made.out).at("signature").get<std::string>(), File("model.sig"));
  fs::remove_all(File("1"));
  EXPECT_EQ(zoo({"pull", "example/Tiny@0.1.0", "-o", File("1")}).code, 0);
  EXPECT_EQ(TheyVerify().code, 0) << TheyVerify().all();
}

}  // namespace
}  // namespace oscar
