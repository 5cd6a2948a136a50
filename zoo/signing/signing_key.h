// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Keys and certificates for signatures (OpenSSL). OpenSSF Model Signing v1.0 requires ECDSA with
// P-256 and SHA-256, P-384 and SHA-384, or P-521 and SHA-512. Other keys are refused with an
// explanation.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct evp_pkey_st;  // OpenSSL's EVP_PKEY
struct x509_st;

namespace oscar {

class PublicKey {
 public:
  static PublicKey FromPem(const std::string& pem, std::string_view what);  // throws InputError

  // SHA-256 of the key as PEM (SubjectPublicKeyInfo), in hexadecimal. Bundles store it as the key
  // hint.
  const std::string& id() const { return id_; }
  const std::string& pem() const { return pem_; }
  bool Verifies(std::string_view message, std::string_view signature) const;

 private:
  friend class PrivateKey;
  friend class Certificate;
  PublicKey(std::shared_ptr<evp_pkey_st> key, std::string_view what);

  std::shared_ptr<evp_pkey_st> key_;
  std::string pem_, id_;
};

class PrivateKey {
 public:
  // `password` opens an encrypted key. Throws InputError.
  static PrivateKey FromPem(const std::string& pem, const std::string& password,
                            std::string_view what);

  const PublicKey& public_key() const { return public_key_; }
  std::string Sign(std::string_view message) const;  // DER

 private:
  explicit PrivateKey(PublicKey key) : public_key_(std::move(key)) {}
  PublicKey public_key_;  // also holds the private part
};

class Certificate {
 public:
  static Certificate FromDer(std::string_view der, std::string_view what);  // throws InputError
  // Reads all certificates of a PEM text, which must have at least one. Throws InputError.
  static std::vector<Certificate> FromPem(const std::string& pem, std::string_view what);

  std::string der() const;
  PublicKey public_key(std::string_view what) const;  // throws InputError for unsupported key types
  // The certificate's names: common name, e-mail addresses, URIs and host names.
  std::vector<std::string> names() const;
  // Whether key usage digitalSignature, or else extended key usage codeSigning, is set.
  bool may_sign() const;

  // Returns why no chain of certificates in `between` leads from this one to a self-signed
  // certificate in `roots`; "" if there is one. Checks validity at the time when this certificate
  // became valid, not now. Trap: a signature does not prove when it was made, so expired
  // certificates are accepted.
  std::string ChainProblem(std::span<const Certificate> between,
                           std::span<const Certificate> roots) const;

 private:
  explicit Certificate(std::shared_ptr<x509_st> certificate)
      : certificate_(std::move(certificate)) {}
  std::shared_ptr<x509_st> certificate_;
};

}  // namespace oscar
