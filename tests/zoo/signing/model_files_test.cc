// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests a signed directory and the ways to tamper with it. The reference implementation signed
// tests/data/oms.
#include "zoo/signing/model_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "capture/files/digest.h"
#include "capture/files/strict_json.h"
#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"
#include "tests/zoo/sample_zoo.h"
#include "tests/zoo/signing/sample_keys.h"
#include "zoo/signing/trust_error.h"
#include "zoo/store/blob_store.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

class SignedModel : public testing::Test {
 protected:
  SignedModel() : scratch_(TestScratch("signed-model")), model_(scratch_ / "model") {
    fs::copy(TestData("oms/model"), model_, fs::copy_options::recursive);
    signed_ = StatementOf(model_, {});
  }

  // Returns kDone, or the exit code that says why the model does not match `statement`.
  ExitCode Against(const ModelStatement& statement, const ModelCheck& check = {}) {
    try {
      CheckModel(model_, statement, check);
    } catch (const Error& error) {
      said_ = error.what();
      return error.exit_code();
    }
    return ExitCode::kDone;
  }
  ExitCode Check(const ModelCheck& check = {}) { return Against(signed_, check); }

  fs::path scratch_, model_;
  ModelStatement signed_;
  std::string said_;
};

TEST_F(SignedModel, OfTheReferenceImplementationVerifies) {
  const SignedBundle by_key = ParseBundle(ReadText(TestData("oms/key.sig")), "key.sig");
  CheckSignedWith(by_key, PublicKey::FromPem(ReadText(TestData("oms/key.pub")), "key.pub"), "key");
  EXPECT_EQ(Against(ParseStatement(by_key.payload, "key.sig")), ExitCode::kDone) << said_;
  const SignedBundle certified =
      ParseBundle(ReadText(TestData("oms/certificate.sig")), "certificate.sig");
  CheckSignedUnder(certified, Certificate::FromPem(ReadText(TestData("oms/root.crt")), "root.crt"),
                   "cert");
  EXPECT_EQ(certified.chain.front().names(),
            (std::vector<std::string>{"oscar-test-signer", "signer@example.org"}));
  // Our statement about these files has the same names, digests and root digest.
  const ModelStatement theirs = ParseStatement(certified.payload, "certificate.sig");
  EXPECT_EQ(theirs.files, signed_.files);
  const auto root = [](const std::string& payload) {
    return Json::parse(payload).at("subject")[0].at("digest");
  };
  EXPECT_EQ(root(StatementText(signed_)), root(by_key.payload));
}

TEST_F(SignedModel, AlteredMissingAndExtraFilesAreToldApart) {
  EXPECT_EQ(Check(), ExitCode::kDone);
  WriteText(model_ / "sub" / "new.bin", "x");
  EXPECT_EQ(Check(), TrustExit::kExtraFile);
  EXPECT_TRUE(Says(said_, "\"sub/new.bin\""));
  EXPECT_EQ(Check({.ignore_unsigned = true}), ExitCode::kDone);
  EXPECT_EQ(Check({.ignored = {"sub/new.bin"}}), ExitCode::kDone);
  EXPECT_EQ(Check({.ignored = {"sub/new"}}), TrustExit::kExtraFile);  // a path, not a text prefix
  EXPECT_EQ(Check({.ignored = {"sub"}}), TrustExit::kAltered);        // contains a signed file
  WriteText(model_ / "weights.bin", "Weights\n");
  EXPECT_EQ(Check(), TrustExit::kAltered);
  EXPECT_EQ(Check({.ignore_unsigned = true}), TrustExit::kAltered);
  WriteText(model_ / "weights.bin", "weights\n");
  fs::remove(model_ / "empty");
  EXPECT_EQ(Check({.ignore_unsigned = true}), TrustExit::kAltered);
  EXPECT_TRUE(Says(said_, "missing: \"empty\""));
  fs::rename(model_ / "sub" / "new.bin", model_ / "Empty");  // names are case-sensitive
  EXPECT_EQ(Check(), TrustExit::kAltered);
}

TEST_F(SignedModel, TwoFilesSwappedAreBothAltered) {
  fs::rename(model_ / "weights.bin", scratch_ / "w");
  fs::rename(model_ / "empty", model_ / "weights.bin");
  fs::rename(scratch_ / "w", model_ / "empty");
  EXPECT_EQ(Check(), TrustExit::kAltered);
  EXPECT_TRUE(Says(said_, "\"empty\", \"weights.bin\""));
}

TEST_F(SignedModel, FilesOfGitAtTheTopAreNoPartOfIt) {
  for (const char* name : {".git", ".github"}) fs::create_directory(model_ / name);
  for (const char* name : {".git/HEAD", ".github/x", ".gitignore", ".gitattributes"})
    WriteText(model_ / name, "x");
  EXPECT_EQ(Check(), ExitCode::kDone) << said_;
  WriteText(model_ / "sub" / ".gitignore", "x");
  EXPECT_EQ(Check(), TrustExit::kExtraFile);
}

TEST_F(SignedModel, LinksAndSpecialFilesAreRefusedWhereverTheyAre) {
  fs::create_symlink(model_ / "empty", model_ / "link");
  EXPECT_EQ(Check(), ExitCode::kInput);
  EXPECT_EQ(Check({.ignored = {"link"}}), ExitCode::kInput);
  EXPECT_THROW(StatementOf(model_, {"link"}), InputError);
  fs::remove(model_ / "link");
  fs::create_directory_symlink(scratch_, model_ / "link");
  EXPECT_EQ(Check(), ExitCode::kInput);
  fs::remove(model_ / "link");
  ASSERT_EQ(mkfifo((model_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(Check(), ExitCode::kInput);
  fs::remove(model_ / "pipe");
  // A signed file is not part of the model if it is reached through a link to an equal folder.
  fs::rename(model_ / "sub", scratch_ / "sub");
  fs::create_directory_symlink(scratch_ / "sub", model_ / "sub");
  EXPECT_EQ(Check({.ignore_unsigned = true}), ExitCode::kInput);
}

TEST_F(SignedModel, NoSignedNameLeavesTheModel) {
  for (const char* name : {"../outside", "sub/../../outside", "/etc/passwd", "sub/.."}) {
    ModelStatement hostile;
    hostile.subject = "m";
    hostile.files = {{name, Sha256Hex("x")}};
    EXPECT_THROW(ParseStatement(StatementText(hostile), "s"), InputError) << name;
  }
}

TEST_F(SignedModel, AStatementThatContradictsItselfIsRefused) {
  const std::string text = StatementText(signed_);
  const struct {
    const char *what, *pointer;
    Json value;
  } cases[] = {
      {"type", "/_type", "https://in-toto.io/Statement/v0.1"},
      {"predicate", "/predicateType", "https://slsa.dev/provenance/v1"},
      {"older than Model Signing v1.0", "/predicateType", "https://model_signing/Digests/v0.1"},
      {"one subject", "/subject", Json::array()},
      {"root digest", "/subject/0/digest/sha256", Sha256Hex("x")},
      {"root digest", "/predicate/resources/0/digest", Sha256Hex("x")},
      {"root digest", "/predicate/resources", Json::array()},
      {"hexadecimal", "/predicate/resources/0/digest", "abc"},
      {"algorithm", "/predicate/resources/0/algorithm", "blake2b"},
      {"twice", "/predicate/resources/1/name", "empty"},
      {"shards", "/predicate/serialization/method", "shards"},
      {"blake3", "/predicate/serialization/hash_type", "blake3"},
      {"sha256", "/predicate/serialization/hash_type", "md5"},
      {"allow_symlinks", "/predicate/serialization/allow_symlinks", "no"},
      {"serialization", "/predicate/serialization", nullptr},
      {"ignore_paths", "/predicate/serialization/ignore_paths", "x"}};
  for (const auto& [what, pointer, value] : cases) {
    Json json = Json::parse(text);
    json[Json::json_pointer(pointer)] = value;
    EXPECT_TRUE(Says(ErrorOf<InputError>([&] { ParseStatement(json.dump(), "s"); }), what));
  }
}

TEST_F(SignedModel, ItsSignatureMayLieInsideAndPathsMayBeLeftOut) {
  const Signer signer = NewSigner();
  const fs::path signature = model_ / "model.sig";
  SignModel(model_, std::vector<std::string>{(model_ / "sub").string()}, signer, signature);
  const SignedBundle bundle = ParseBundle(ReadText(signature), "b");
  CheckSignedWith(bundle, signer.key.public_key(), "b");
  const ModelStatement statement = ParseStatement(bundle.payload, "b");
  EXPECT_EQ(statement.files.size(), 3u);
  EXPECT_EQ(Against(statement), ExitCode::kDone) << said_;
  SignModel(model_, {}, signer, signature);  // again, over its own signature
  EXPECT_EQ(ParseStatement(ParseBundle(ReadText(signature), "b").payload, "b").files.size(), 4u);
}

TEST_F(SignedModel, PathsAreTakenFromTheWorkingDirectoryOrFromTheModel) {
  const std::vector<std::string> given = {(model_ / "sub").string() + "/", "sub/x.bin",
                                          "/elsewhere", "../up", "./empty"};
  EXPECT_EQ(PathsInModel(model_, given), (std::vector<std::string>{"sub", "sub/x.bin", "empty"}));
}

TEST_F(SignedModel, WhatAStatementIgnoresIsBelowTheModel) {
  fs::create_directory(model_ / "logs");
  WriteText(model_ / "logs" / "x", "x");
  for (const std::string& path : {std::string("logs"), std::string("logs/"), std::string("./logs"),
                                  (model_ / "logs").string()}) {
    signed_.ignored = {path};
    EXPECT_EQ(Check(), ExitCode::kDone) << path << said_;
  }
  for (const char* path : {"log", "../signed-model/model/logs", "/logs", "sub/../logs", "*"}) {
    signed_.ignored = {path};
    EXPECT_EQ(Check(), TrustExit::kExtraFile) << path;
  }
}

TEST_F(SignedModel, NothingAndWhatHasNoNameIsNotSigned) {
  fs::create_directory(scratch_ / "none");
  EXPECT_THROW(StatementOf(scratch_ / "none", {}), InputError);
  EXPECT_THROW(StatementOf(scratch_ / "not there", {}), InputError);
  WriteText(model_ / "\xff", "x");
  EXPECT_THROW(StatementOf(model_, {}), InputError);
  EXPECT_EQ(Check(), TrustExit::kExtraFile);
}

TEST_F(SignedModel, OneFileIsAModelToo) {
  model_ /= "weights.bin";
  ModelStatement statement = StatementOf(model_, {});
  EXPECT_EQ(Against(statement), ExitCode::kDone) << said_;
  statement.files = {{"weights.bin", statement.files.at(".")}};  // the name that others use
  EXPECT_EQ(Against(statement), ExitCode::kDone) << said_;
  WriteText(model_, "other");
  EXPECT_EQ(Against(statement), TrustExit::kAltered);
}

}  // namespace
}  // namespace oscar
