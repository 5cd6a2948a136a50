// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/signing/bundle.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <initializer_list>

#include "capture/files/quote.h"
#include "capture/files/strict_json.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "zoo/signing/trust_error.h"

namespace oscar {
namespace {

constexpr std::string_view kMediaType = "application/vnd.dev.sigstore.bundle.v0.3+json";
constexpr std::string_view kPayloadType = "application/vnd.in-toto+json";
constexpr JsonLimits kBundleLimits{
    .max_depth = 16, .max_bytes = size_t{256} << 20, .max_values = 100'000};

std::string ToBase64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  text.resize(static_cast<size_t>(EVP_EncodeBlock(
      reinterpret_cast<unsigned char*>(text.data()),
      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()))));
  return text;
}

std::string FromBase64(std::string_view text, std::string_view what) {
  const size_t digits = std::min(text.find('='), text.size());
  const bool plain =
      std::all_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(digits), [](unsigned char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
               c == '+' || c == '/';
      });
  const size_t padding = text.size() - digits;
  if (!plain || text.size() % 4 != 0 || padding > 2 ||
      text.find_first_not_of('=', digits) != text.npos) {
    throw InputError(fmt::format("{}: not base64 with padding", what));
  }
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  OSCAR_CHECK_EQ(static_cast<size_t>(size), bytes.size());
  bytes.resize(bytes.size() - padding);
  return bytes;
}

bool Has(const Json& object, const char* key) {
  return object.contains(key) && !object.at(key).is_null();
}

const Json& ObjectWith(const Json& object, std::initializer_list<std::string_view> members,
                       std::string_view what) {
  if (!object.is_object()) throw InputError(fmt::format("{}: expected a JSON object", what));
  for (const auto& [key, value] : object.items()) {
    if (std::find(members.begin(), members.end(), key) == members.end())
      throw InputError(fmt::format("{}: unknown member {}", what, Quoted(key)));
  }
  return object;
}

const Json& Array(const Json& array, std::string_view what) {
  if (!array.is_array()) throw InputError(fmt::format("{}: expected a JSON array", what));
  return array;
}

std::string Bytes(const Json& object, const char* key, std::string_view what) {
  return FromBase64(JsonString(object, key, what), fmt::format("{}: '{}'", what, key));
}

// Returns the bytes that are signed (DSSE v1.0): "DSSEv1" SP LEN(type) SP type SP LEN(payload) SP
// payload.
std::string PreAuthenticationEncoding(std::string_view payload) {
  return fmt::format("DSSEv1 {} {} {} {}", kPayloadType.size(), kPayloadType, payload.size(),
                     payload);
}

void ReadMaterial(const Json& material, SignedBundle* bundle, std::string_view what) {
  ObjectWith(material,
             {"publicKey", "x509CertificateChain", "certificate", "tlogEntries",
              "timestampVerificationData"},
             what);
  // Keyless signatures have log entries, and other signatures may. Their form is checked, but they
  // are not used.
  if (material.contains("tlogEntries")) {
    for (const Json& entry : Array(material.at("tlogEntries"), what)) {
      for (const char* key :
           {"logIndex", "logId", "kindVersion", "inclusionProof", "canonicalizedBody"})
        JsonMember(entry, key, what);
    }
  }
  if (Has(material, "timestampVerificationData"))
    ObjectWith(material.at("timestampVerificationData"), {"rfc3161Timestamps"}, what);
  const bool key = Has(material, "publicKey"), chain = Has(material, "x509CertificateChain");
  if (Has(material, "certificate") && !key && !chain) {
    throw InputError(
        fmt::format("{}: a keyless (sigstore) signature, which needs Fulcio and Rekor to be "
                    "verified; only signatures with a key or a certificate can be verified here",
                    what));
  }
  if (key == chain || Has(material, "certificate")) {
    throw InputError(
        fmt::format("{}: expected exactly one of publicKey and x509CertificateChain", what));
  }
  if (key) {
    // Bundles made before v1.1 of the reference implementation have rawBytes and keyDetails.
    const Json& identifier =
        ObjectWith(material.at("publicKey"), {"hint", "rawBytes", "keyDetails"}, what);
    if (Has(identifier, "hint")) bundle->key_hint = JsonString(identifier, "hint", what);
    return;
  }
  const Json& certificates =
      Array(JsonMember(ObjectWith(material.at("x509CertificateChain"), {"certificates"}, what),
                       "certificates", what),
            what);
  for (const Json& one : certificates) {
    bundle->chain.push_back(
        Certificate::FromDer(Bytes(ObjectWith(one, {"rawBytes"}, what), "rawBytes", what), what));
  }
  if (bundle->chain.empty()) throw InputError(fmt::format("{}: contains no certificate", what));
}

}  // namespace

SignedBundle ParseBundle(std::string_view text, std::string_view what) {
  const Json json = ParseStrictJson(text, what, kBundleLimits);
  ObjectWith(json, {"mediaType", "verificationMaterial", "dsseEnvelope", "messageSignature"}, what);
  if (const std::string type = JsonString(json, "mediaType", what); type != kMediaType) {
    throw InputError(fmt::format("{}: media type {}, expected {}", what, Quoted(type), kMediaType));
  }
  if (Has(json, "messageSignature"))
    throw InputError(fmt::format("{}: signs a message, not a DSSE envelope", what));
  SignedBundle bundle;
  ReadMaterial(JsonMember(json, "verificationMaterial", what), &bundle, what);
  const Json& envelope = ObjectWith(JsonMember(json, "dsseEnvelope", what),
                                    {"payload", "payloadType", "signatures"}, what);
  bundle.payload = Bytes(envelope, "payload", what);
  if (const std::string type = JsonString(envelope, "payloadType", what); type != kPayloadType) {
    throw InputError(
        fmt::format("{}: payload type {}, expected {}", what, Quoted(type), kPayloadType));
  }
  const Json& signatures = Array(JsonMember(envelope, "signatures", what), what);
  if (signatures.empty()) throw InputError(fmt::format("{}: contains no signature", what));
  for (const Json& one : signatures) {
    ObjectWith(one, {"sig", "keyid"}, what);
    JsonString(one, "keyid", "", what);
    const std::string signature = Bytes(one, "sig", what);
    if (&one == &signatures.front()) bundle.signature = signature;
  }
  return bundle;
}

void CheckSignedWith(const SignedBundle& bundle, const PublicKey& key, std::string_view what) {
  if (!bundle.chain.empty()) {
    throw TrustError(TrustExit::kWrongKey,
                     fmt::format("{}: signed with a certificate, not with a bare key", what));
  }
  if (!bundle.key_hint.empty() && bundle.key_hint != key.id()) {
    throw TrustError(TrustExit::kWrongKey, fmt::format("{}: signed with the key {}, not with {}",
                                                       what, Quoted(bundle.key_hint), key.id()));
  }
  if (key.Verifies(PreAuthenticationEncoding(bundle.payload), bundle.signature)) return;
  if (bundle.key_hint.empty()) {
    throw TrustError(TrustExit::kWrongKey,
                     fmt::format("{}: not signed with the key {}, or altered", what, key.id()));
  }
  throw TrustError(
      TrustExit::kAltered,
      fmt::format("{}: altered, because the signature does not match the payload", what));
}

void CheckSignedUnder(const SignedBundle& bundle, std::span<const Certificate> roots,
                      std::string_view what) {
  if (bundle.chain.empty()) {
    throw TrustError(TrustExit::kWrongKey,
                     fmt::format("{}: signed with a bare key, not with a certificate", what));
  }
  const Certificate& leaf = bundle.chain.front();
  const std::string problem = leaf.ChainProblem(std::span(bundle.chain).subspan(1), roots);
  if (!problem.empty()) {
    throw TrustError(
        TrustExit::kWrongKey,
        fmt::format("{}: the certificate is not under a trusted root: {}", what, problem));
  }
  if (!leaf.may_sign()) {
    throw TrustError(TrustExit::kWrongKey,
                     fmt::format("{}: the certificate may not sign: it has neither key usage "
                                 "digitalSignature nor extended key usage codeSigning",
                                 what));
  }
  if (!leaf.public_key(what).Verifies(PreAuthenticationEncoding(bundle.payload),
                                      bundle.signature)) {
    throw TrustError(
        TrustExit::kAltered,
        fmt::format("{}: altered, because the signature does not match the payload", what));
  }
}

void CheckSigner(const Signer& signer, std::string_view what) {
  if (signer.chain.empty()) return;
  if (signer.chain.front().public_key(what).id() != signer.key.public_key().id())
    throw InputError(fmt::format("{}: the certificate belongs to another key", what));
  if (!signer.chain.front().may_sign()) {
    throw InputError(
        fmt::format("{}: the certificate may not sign: it needs key usage digitalSignature or "
                    "extended key usage codeSigning",
                    what));
  }
}

std::string SignedBundleText(std::string_view payload, const Signer& signer) {
  Json material = {{"tlogEntries", Json::array()}};
  if (signer.chain.empty()) {
    material["publicKey"] = {{"hint", signer.key.public_key().id()}};
  } else {
    Json certificates = Json::array();
    for (const Certificate& one : signer.chain)
      certificates.push_back({{"rawBytes", ToBase64(one.der())}});
    material["x509CertificateChain"] = {{"certificates", certificates}};
  }
  const std::string signature = signer.key.Sign(PreAuthenticationEncoding(payload));
  return CanonicalJson(
      {{"mediaType", kMediaType},
       {"verificationMaterial", material},
       {"dsseEnvelope",
        {{"payload", ToBase64(payload)},
         {"payloadType", kPayloadType},
         {"signatures", Json::array({{{"sig", ToBase64(signature)}, {"keyid", ""}}})}}}});
}

}  // namespace oscar
