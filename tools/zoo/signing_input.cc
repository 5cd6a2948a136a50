// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/zoo/signing_input.h"

#include <cstdlib>

#include "zoo/signing/model_statement.h"
#include "zoo/store/blob_store.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr size_t kMaxKeyBytes = size_t{1} << 20;
constexpr size_t kMaxBundleBytes = size_t{256} << 20;

}  // namespace

PublicKey ReadPublicKey(const fs::path& file) {
  return PublicKey::FromPem(ReadSmallFile(file, kMaxKeyBytes), file.string());
}

std::vector<Certificate> ReadCertificates(const std::vector<std::string>& files) {
  std::vector<Certificate> certificates;
  for (const std::string& file : files) {
    const std::vector<Certificate> some =
        Certificate::FromPem(ReadSmallFile(file, kMaxKeyBytes), file);
    certificates.insert(certificates.end(), some.begin(), some.end());
  }
  return certificates;
}

Signer ReadSigner(const std::string& key, const std::string& certificate,
                  const std::vector<std::string>& chain) {
  const char* password = std::getenv("OSCAR_KEY_PASSWORD");
  Signer signer{PrivateKey::FromPem(ReadSmallFile(key, kMaxKeyBytes),
                                    password == nullptr ? "" : password, key),
                {}};
  if (certificate.empty()) return signer;
  signer.chain = {ReadCertificates({certificate}).front()};
  for (const Certificate& one : ReadCertificates(chain)) signer.chain.push_back(one);
  CheckSigner(signer, certificate);
  return signer;
}

void CheckSignedModel(const fs::path& model, const std::string& bundle_file,
                      const std::string& public_key, const std::vector<std::string>& roots,
                      const ModelCheck& check) {
  const SignedBundle bundle = ParseBundle(ReadSmallFile(bundle_file, kMaxBundleBytes), bundle_file);
  if (public_key.empty()) {
    CheckSignedUnder(bundle, ReadCertificates(roots), bundle_file);
  } else {
    CheckSignedWith(bundle, ReadPublicKey(public_key), bundle_file);
  }
  std::vector<std::string> ignored = check.ignored;
  ignored.push_back(fs::absolute(bundle_file).string());
  CheckModel(model, ParseStatement(bundle.payload, bundle_file),
             {PathsInModel(model, ignored), check.ignore_unsigned});
}

}  // namespace oscar
