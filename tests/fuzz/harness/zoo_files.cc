// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <openssl/evp.h>

#include "tests/fuzz/harness/harnesses.h"
#include "zoo/signing/bundle.h"
#include "zoo/signing/model_statement.h"
#include "zoo/signing/trust_error.h"
#include "zoo/store/zoo_index.h"
#include "zoo/trust/snapshot.h"
#include "zoo/trust/trust_policy.h"

namespace oscar::fuzz {
namespace {

const std::string kDigest(64, 'a');

// Returns whether `text` is a digest, independently of IsSha256Hex.
bool IsDigest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::string Base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  text.resize(static_cast<size_t>(EVP_EncodeBlock(
      reinterpret_cast<unsigned char*>(text.data()),
      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()))));
  return text;
}

// Returns "" if `text` is not base64.
std::string Unbase64(const std::string& text) {
  std::string bytes(text.size() / 4 * 3 + 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  bytes.resize(size < 0 ? 0 : static_cast<size_t>(size) - padding);
  return bytes;
}

void CheckStatement(std::string_view payload) {
  const ModelStatement statement = ParseStatement(payload, "payload");
  for (const auto& [name, digest] : statement.files) {
    const std::filesystem::path path(name);
    FUZZ_CHECK(!path.empty() && path.is_relative() && path.lexically_normal() == path &&
               *path.begin() != "..");
    FUZZ_CHECK(IsDigest(digest));
  }
  const ModelStatement again = ParseStatement(StatementText(statement), "again");
  FUZZ_CHECK(again.subject == statement.subject && again.files == statement.files);
  FUZZ_CHECK(again.ignored == statement.ignored);
}

// Checks that certificates of an accepted bundle are written as they were read. Also checks its
// signature, with the last certificate as the root and with the first certificate's key as a bare
// key.
void RunBundle(std::string_view input) {
  SignedBundle bundle = ParseBundle(input, "bundle");
  for (const Certificate& one : bundle.chain) {
    (void)one.may_sign();
    for (const std::string& name : one.names()) FUZZ_CHECK(name.size() <= input.size());
    FUZZ_CHECK(Certificate::FromDer(one.der(), "again").der() == one.der());
  }
  if (!bundle.chain.empty()) {
    try {
      CheckSignedUnder(bundle, std::span(bundle.chain).last(1), "bundle");
    } catch (const TrustError&) {
    }
    const PublicKey key = bundle.chain.front().public_key("bundle");
    bundle.chain.clear();
    try {
      CheckSignedWith(bundle, key, "bundle");
    } catch (const TrustError&) {
    }
  }
  CheckStatement(bundle.payload);
}

std::vector<std::string> BundleSeeds() { return SeedFiles("oms", ".sig", 16384); }

// Changes the inside of a base64 value: the payload, a certificate or the signature.
std::string MutateBundle(const std::string& input, Random& random) {
  Json bundle = ParseLoosely(input);
  const int which = static_cast<int>(random() % 4);
  if (which == 0 || !bundle.is_object()) return MutateJson(input, random);
  try {
    Json& envelope = bundle.at("dsseEnvelope");
    Json& text = which == 1   ? envelope.at("payload")
                 : which == 2 ? envelope.at("signatures").at(0).at("sig")
                              : bundle.at("verificationMaterial")
                                    .at("x509CertificateChain")
                                    .at("certificates")
                                    .at(0)
                                    .at("rawBytes");
    const std::string inside = Unbase64(text.get<std::string>());
    text = Base64(which == 1 ? MutateJson(inside, random) : MutateBytes(inside, 4096, random));
  } catch (const Json::exception&) {
    return MutateJson(input, random);
  }
  return bundle.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Input: a byte that selects the kind of file, and one of the other files of a zoo. Checks that an
// accepted file survives a round trip.
void RunZooJson(std::string_view input) {
  const char kind = input.empty() ? '0' : input[0];
  const std::string_view text = input.substr(std::min<size_t>(1, input.size()));
  if (kind == '0') {
    const ZooName name = ParseZooName("example/tiny", "name");
    const LatestPointer latest = ParseLatest(text, name, "latest.json");
    const std::string written = CanonicalJson(LatestToJson(name, latest));
    const LatestPointer again = ParseLatest(written, name, "again");
    FUZZ_CHECK(again.version.text() == latest.version.text() && again.identity == latest.identity);
    FUZZ_CHECK(IsDigest(latest.identity));
  } else if (kind == '1') {
    const SignatureIndex index = ParseSignatureIndex(text, "index.json");
    FUZZ_CHECK(index.size() <= kMaxSignatures);
    for (const auto& [digest, bytes] : index)
      FUZZ_CHECK(IsDigest(digest) && bytes <= kMaxSignatureBytes);
    FUZZ_CHECK(ParseSignatureIndex(CanonicalJson(SignatureIndexToJson(index)), "again") == index);
  } else if (kind == '2') {
    const ZooIndex index = ParseIndex(text, "index.json");
    const std::string written = CanonicalJson(IndexToJson(index));
    FUZZ_CHECK(CanonicalJson(IndexToJson(ParseIndex(written, "again"))) == written);
    for (const IndexRow& row : index.rows) FUZZ_CHECK(IsDigest(row.identity));
  } else if (kind == '3') {
    const Snapshot snapshot = ParseSnapshot(text, "snapshot");
    const std::string written = SnapshotText(snapshot);
    FUZZ_CHECK(SnapshotText(ParseSnapshot(written, "again")) == written);
  } else {
    const TrustMemory memory = ParseMemory(text, "memory");
    const std::string written = CanonicalJson(MemoryToJson(memory));
    FUZZ_CHECK(CanonicalJson(MemoryToJson(ParseMemory(written, "again"))) == written);
  }
}

std::vector<std::string> ZooJsonSeeds() {
  const ZooName name = ParseZooName("example/tiny", "seed");
  const ZooVersion version = ZooVersionOf("1.2.3", "seed");
  IndexRow row;
  row.name = name;
  row.version = version;
  row.identity = kDigest;
  row.bytes = 30;
  row.model = "example/tiny";
  row.config_sha256 = kDigest;
  row.kl = 0.5;
  row.runtimes = {"sglang"};
  Snapshot snapshot{5, 9, {{"example/tiny", {{version, kDigest}}}}};
  TrustMemory memory;
  memory.names["example/tiny"] = {version, kDigest};
  memory.snapshots_unix["key"] = 7;
  return {"0" + CanonicalJson(LatestToJson(name, {version, kDigest})),
          "1" + CanonicalJson(SignatureIndexToJson({{kDigest, 100}})),
          "2" + CanonicalJson(IndexToJson({.rows = {row}, .problems = {}})),
          "3" + SnapshotText(snapshot), "4" + CanonicalJson(MemoryToJson(memory))};
}

std::string MutateZooJson(const std::string& input, Random& random) {
  if (input.empty()) return input;
  return input[0] + MutateJson(input.substr(1), random);
}

}  // namespace

const Harness kBundle = {"bundle", RunBundle, BundleSeeds, MutateBundle, 16384, 10};
const Harness kZooJson = {"zoo_json", RunZooJson, ZooJsonSeeds, MutateZooJson};

}  // namespace oscar::fuzz
