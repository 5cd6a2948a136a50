// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// New keys and certificates for tests, as PEM.
#pragma once

#include <string>
#include <vector>

#include "zoo/signing/bundle.h"

namespace oscar {

// Returns a new private key. `type` is OpenSSL's name: EC with a curve, or ED25519.
std::string NewKeyPem(const std::string& curve = "P-256", const std::string& type = "EC");
std::string PublicPem(const std::string& private_pem);
std::string EncryptedPem(const std::string& private_pem, const std::string& password);

PrivateKey KeyOf(const std::string& pem);
Signer NewSigner();  // with a key and no certificate

struct CertificateRecipe {
  std::string subject = "signer";
  bool authority = false;
  std::string key_usage = "critical,digitalSignature";  // "": no such extension
  std::string extended_key_usage = {};
  std::string names = "email:signer@example.org";
  long from_days = -1, to_days = 1;  // validity, in days from now
};

struct Issuer {
  std::string key, certificate;  // PEM
};
Issuer NewRoot(const CertificateRecipe& recipe = {.subject = "root",
                                                  .authority = true,
                                                  .key_usage = "critical,keyCertSign",
                                                  .names = ""});
// Returns a new key and its certificate, signed by `issuer`.
Issuer Issued(const Issuer& issuer, const CertificateRecipe& recipe);

// Returns a signer with a certificate; `between` are intermediate certificates.
Signer CertifiedSigner(const Issuer& signer, const std::vector<Issuer>& between = {});
std::vector<Certificate> RootsOf(const Issuer& root);

}  // namespace oscar
