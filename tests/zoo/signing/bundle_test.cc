// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests who signed a payload, with keys and with certificates, and every way in which a bundle is
// invalid.
#include "zoo/signing/bundle.h"

#include <gtest/gtest.h>

#include <functional>

#include "capture/files/strict_json.h"
#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/zoo/signing/sample_keys.h"
#include "zoo/signing/trust_error.h"

namespace oscar {
namespace {

// Returns kDone, or the exit code of the error that `run` throws.
ExitCode CodeFrom(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.exit_code();
  }
  return ExitCode::kDone;
}

ExitCode Under(const Signer& signer, const std::vector<Certificate>& roots) {
  return CodeFrom(
      [&] { CheckSignedUnder(ParseBundle(SignedBundleText("payload", signer), "b"), roots, "b"); });
}

TEST(SigningKey, EachCurveSignsAndNoOtherKeyVerifies) {
  for (const char* curve : {"P-256", "P-384", "P-521"}) {
    const PrivateKey key = KeyOf(NewKeyPem(curve)), other = KeyOf(NewKeyPem(curve));
    const std::string signature = key.Sign("text");
    EXPECT_TRUE(key.public_key().Verifies("text", signature)) << curve;
    EXPECT_FALSE(key.public_key().Verifies("Text", signature)) << curve;
    EXPECT_FALSE(other.public_key().Verifies("text", signature)) << curve;
    EXPECT_FALSE(key.public_key().Verifies("text", signature + "x")) << curve;
    EXPECT_FALSE(key.public_key().Verifies("text", "")) << curve;
    EXPECT_EQ(PublicKey::FromPem(key.public_key().pem(), "again").id(), key.public_key().id());
  }
}

TEST(SigningKey, OtherKeysAreRefusedByName) {
  EXPECT_THROW(KeyOf(NewKeyPem("secp256k1")), InputError);
  EXPECT_THROW(KeyOf(NewKeyPem("P-224")), InputError);
  EXPECT_THROW(KeyOf(NewKeyPem("", "ED25519")), InputError);
  EXPECT_THROW(KeyOf(""), InputError);
  EXPECT_THROW(KeyOf("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), InputError);
  const std::string pem = NewKeyPem();
  EXPECT_THROW(PublicKey::FromPem(pem, "a private key"), InputError);
  EXPECT_THROW(Certificate::FromPem(pem, "no certificate"), InputError);
}

TEST(SigningKey, AnEncryptedKeyTakesItsPassword) {
  const std::string pem = NewKeyPem(), encrypted = EncryptedPem(pem, "secret");
  EXPECT_EQ(PrivateKey::FromPem(encrypted, "secret", "k").public_key().id(),
            KeyOf(pem).public_key().id());
  EXPECT_THROW(PrivateKey::FromPem(encrypted, "Secret", "k"), InputError);
  EXPECT_THROW(PrivateKey::FromPem(encrypted, "", "k"), InputError);  // without a prompt
}

TEST(SignedBundle, IsOfTheKeyThatMadeIt) {
  const Signer signer = NewSigner();
  const SignedBundle bundle = ParseBundle(SignedBundleText("payload", signer), "b");
  EXPECT_EQ(bundle.payload, "payload");
  EXPECT_EQ(bundle.key_hint, signer.key.public_key().id());
  CheckSignedWith(bundle, signer.key.public_key(), "b");
  SignedBundle edited = bundle;
  edited.payload += " ";
  EXPECT_EQ(CodeFrom([&] { CheckSignedWith(edited, signer.key.public_key(), "b"); }),
            TrustExit::kAltered);
  const PrivateKey other = KeyOf(NewKeyPem());
  EXPECT_EQ(CodeFrom([&] { CheckSignedWith(bundle, other.public_key(), "b"); }),
            TrustExit::kWrongKey);
  SignedBundle without_hint = bundle;  // a hint is not a proof
  without_hint.key_hint = "";
  CheckSignedWith(without_hint, signer.key.public_key(), "b");
  EXPECT_EQ(CodeFrom([&] { CheckSignedWith(without_hint, other.public_key(), "b"); }),
            TrustExit::kWrongKey);
  SignedBundle other_hint = bundle;  // hint of `other`, signature of `signer`
  other_hint.key_hint = other.public_key().id();
  EXPECT_EQ(CodeFrom([&] { CheckSignedWith(other_hint, other.public_key(), "b"); }),
            TrustExit::kAltered);
}

TEST(SignedBundle, ACertificateVouchesUnderItsRootAlone) {
  const Issuer root = NewRoot(), other_root = NewRoot();
  const CertificateRecipe authority{
      .subject = "between", .authority = true, .key_usage = "critical,keyCertSign", .names = ""};
  const Issuer between = Issued(root, authority), leaf = Issued(between, {});
  EXPECT_EQ(Under(CertifiedSigner(leaf, {between}), RootsOf(root)), ExitCode::kDone);
  EXPECT_EQ(Under(CertifiedSigner(leaf), RootsOf(root)),
            TrustExit::kWrongKey);  // the intermediate certificate is missing
  EXPECT_EQ(Under(CertifiedSigner(leaf, {between}), RootsOf(other_root)), TrustExit::kWrongKey);
  // An intermediate certificate given as a root does not end the chain; only a self-signed one
  // does.
  EXPECT_EQ(Under(CertifiedSigner(leaf), RootsOf(between)), TrustExit::kWrongKey);
  // A certificate for signing cannot certify others.
  EXPECT_EQ(Under(CertifiedSigner(Issued(Issued(root, {}), {}), {Issued(root, {})}), RootsOf(root)),
            TrustExit::kWrongKey);
  // A forger's own root among the intermediate certificates does not become a trusted root.
  const Issuer forged = Issued(other_root, {});
  EXPECT_EQ(Under(CertifiedSigner(forged, {other_root}), RootsOf(root)), TrustExit::kWrongKey);
}

TEST(SignedBundle, ACertificateMustBeMadeForSigning) {
  const Issuer root = NewRoot();
  const auto with = [&](const CertificateRecipe& recipe) {
    return Under(CertifiedSigner(Issued(root, recipe)), RootsOf(root));
  };
  EXPECT_EQ(with({.extended_key_usage = "codeSigning"}), ExitCode::kDone);
  EXPECT_EQ(with({.extended_key_usage = "serverAuth"}),
            ExitCode::kDone);  // digitalSignature is enough
  EXPECT_EQ(with({.key_usage = "", .extended_key_usage = "codeSigning"}), ExitCode::kDone);
  EXPECT_EQ(with({.key_usage = "", .extended_key_usage = "serverAuth"}), TrustExit::kWrongKey);
  EXPECT_EQ(with({.key_usage = ""}), TrustExit::kWrongKey);  // without key usage, it may not sign
  EXPECT_EQ(with({.key_usage = "critical,keyEncipherment"}), TrustExit::kWrongKey);
  EXPECT_EQ(with({.authority = true, .key_usage = "critical,keyCertSign"}), TrustExit::kWrongKey);
  EXPECT_THROW(CheckSigner(CertifiedSigner(Issued(root, {.key_usage = ""})), "s"), InputError);
}

// A signature has no trusted time, so the chain must hold at the start of the certificate's
// validity.
TEST(SignedBundle, ChainsAreJudgedAtTheCertificatesStart) {
  const Issuer root = NewRoot();
  EXPECT_EQ(Under(CertifiedSigner(Issued(root, {.from_days = -9, .to_days = -8})), RootsOf(root)),
            TrustExit::kWrongKey);  // the root was not valid yet
  const Issuer old_root = NewRoot({.subject = "root",
                                   .authority = true,
                                   .key_usage = "critical,keyCertSign",
                                   .names = "",
                                   .from_days = -20,
                                   .to_days = -5});
  EXPECT_EQ(
      Under(CertifiedSigner(Issued(old_root, {.from_days = -9, .to_days = -8})), RootsOf(old_root)),
      ExitCode::kDone);
  EXPECT_EQ(Under(CertifiedSigner(Issued(old_root, {.from_days = -2})), RootsOf(old_root)),
            TrustExit::kWrongKey);
}

TEST(SignedBundle, ACertificateOfAnotherKeySignsNothing) {
  const Issuer root = NewRoot(), leaf = Issued(root, {});
  const Signer stolen{KeyOf(NewKeyPem()), RootsOf(leaf)};
  EXPECT_THROW(CheckSigner(stolen, "s"), InputError);
  EXPECT_EQ(Under(stolen, RootsOf(root)), TrustExit::kAltered);
}

TEST(SignedBundle, MethodsAreNotTakenForEachOther) {
  const Issuer root = NewRoot(), leaf = Issued(root, {});
  const Signer certified = CertifiedSigner(leaf);
  EXPECT_EQ(Under({certified.key, {}}, RootsOf(root)), TrustExit::kWrongKey);
  EXPECT_EQ(CodeFrom([&] {
              CheckSignedWith(ParseBundle(SignedBundleText("p", certified), "b"),
                              certified.key.public_key(), "b");
            }),
            TrustExit::kWrongKey);
}

TEST(SignedBundle, WhatIsNoBundleIsAnErrorThatSaysWhy) {
  const std::string text = SignedBundleText("payload", NewSigner());
  const auto edited = [&](const std::function<void(Json&)>& edit) {
    Json json = Json::parse(text);
    edit(json);
    return json.dump();
  };
  const Json key = {{"hint", "x"}};
  const struct {
    std::string why, text;
  } cases[] = {
      {"media type", edited([](Json& b) { b["mediaType"] = "application/json"; })},
      {"media type", edited([](Json& b) {
         b["mediaType"] = "application/vnd.dev.sigstore.bundle+json;version=0.2";
       })},
      {"mediaType", edited([](Json& b) { b.erase("mediaType"); })},
      {"unknown member", edited([](Json& b) { b["more"] = 1; })},
      {"dsseEnvelope", edited([](Json& b) { b.erase("dsseEnvelope"); })},
      {"dsseEnvelope", edited([](Json& b) { b["dsseEnvelope"] = nullptr; })},
      {"verificationMaterial", edited([](Json& b) { b.erase("verificationMaterial"); })},
      {"exactly one", edited([](Json& b) { b["verificationMaterial"].erase("publicKey"); })},
      {"exactly one", edited([&](Json& b) {
         b["verificationMaterial"]["x509CertificateChain"]["certificates"] = Json::array();
       })},
      {"keyless", edited([](Json& b) {
         b["verificationMaterial"] = {{"certificate", {{"rawBytes", ""}}},
                                      {"tlogEntries", Json::array()}};
       })},
      {"no certificate", edited([](Json& b) {
         b["verificationMaterial"] = {{"x509CertificateChain", {{"certificates", Json::array()}}}};
       })},
      {"DER", edited([](Json& b) {
         b["verificationMaterial"] = {
             {"x509CertificateChain", {{"certificates", {{{"rawBytes", "AAAA"}}}}}}};
       })},
      {"message", edited([](Json& b) {
         b["messageSignature"] = {{"signature", ""}};
       })},
      {"payload type", edited([](Json& b) { b["dsseEnvelope"]["payloadType"] = "text/plain"; })},
      {"no signature", edited([](Json& b) { b["dsseEnvelope"]["signatures"] = Json::array(); })},
      {"base64", edited([](Json& b) { b["dsseEnvelope"]["payload"] = "a b="; })},
      {"base64", edited([](Json& b) { b["dsseEnvelope"]["payload"] = "aaaaa"; })},
      {"base64", edited([](Json& b) { b["dsseEnvelope"]["payload"] = "a==="; })},
      {"base64", edited([](Json& b) { b["dsseEnvelope"]["payload"] = "=aaa"; })},
      {"unknown member", edited([](Json& b) { b["dsseEnvelope"]["signatures"][0]["x"] = 1; })},
      {"keyid", edited([](Json& b) { b["dsseEnvelope"]["signatures"][0]["keyid"] = 1; })},
      {"", text.substr(0, text.size() / 2)},
      {"", ""},
      {"JSON object", "[]"},
      {"JSON object", "null"},
  };
  for (const auto& [why, bundle] : cases) {
    const std::string error = ErrorOf<InputError>([&] { ParseBundle(bundle, "b"); });
    EXPECT_FALSE(error.empty()) << why;
    EXPECT_TRUE(Says(error, why));
  }
  // The standard allows these forms: no hint or tlogEntries, a null or absent keyid.
  for (const auto& open :
       {edited([](Json& b) { b["verificationMaterial"].erase("tlogEntries"); }),
        edited([](Json& b) {
          b["verificationMaterial"]["publicKey"] = {{"rawBytes", "AAAA"}};
        }),
        edited([](Json& b) { b["dsseEnvelope"]["signatures"][0]["keyid"] = nullptr; }),
        edited([](Json& b) { b["dsseEnvelope"]["signatures"][0].erase("keyid"); })}) {
    EXPECT_EQ(ParseBundle(open, "b").payload, "payload");
  }
}

// Truncates the bundle at every byte and flips every bit. The result is refused or still verifies
// with the same payload.
TEST(SignedBundle, NoPrefixAndNoFlippedBitIsBelieved) {
  const Signer signer = NewSigner();
  const std::string text = SignedBundleText("{\"payload\": 1}", signer);
  const auto verified = [&](const std::string& bytes) {
    try {
      const SignedBundle bundle = ParseBundle(bytes, "b");
      CheckSignedWith(bundle, signer.key.public_key(), "b");
      return bundle.payload == "{\"payload\": 1}";
    } catch (const Error&) {
      return true;
    }
  };
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_TRUE(verified(text.substr(0, i))) << i;
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      EXPECT_TRUE(verified(flipped)) << "byte " << i << " bit " << bit;
    }
  }
}

}  // namespace
}  // namespace oscar
