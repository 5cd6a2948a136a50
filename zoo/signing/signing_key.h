// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Keys and certificates of signatures (OpenSSL): ECDSA on P-256 with SHA-256, P-384 with SHA-384,
// P-521 with SHA-512, the pairs that OpenSSF Model Signing v1.0 requires. Other keys are refused
// by name.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct evp_pkey_st;  // of OpenSSL
struct x509_st;

namespace oscar {

class PublicKey {
 public:
  static PublicKey FromPem(const std::string& pem, std::string_view what);  // throws InputError

  // SHA-256 of the key as a PEM SubjectPublicKeyInfo, in hexadecimal: what bundles call its hint.
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
  PublicKey public_key_;  // its key_ holds the private part too
};

class Certificate {
 public:
  static Certificate FromDer(std::string_view der, std::string_view what);  // throws InputError
  // All of a PEM text, at least one. Throws InputError.
  static std::vector<Certificate> FromPem(const std::string& pem, std::string_view what);

  std::string der() const;
  PublicKey public_key(std::string_view what) const;  // throws InputError for other keys
  // Whom it names: the subject's common name, and its e-mail addresses, URIs and host names.
  std::vector<std::string> names() const;
  // Key usage digitalSignature, or else extended key usage codeSigning.
  bool may_sign() const;

  // Why this certificate is not under one of `roots`, by way of `between`, at the time from which
  // it is valid; "" if it is. Self-signed certificates among `roots` are the ones trusted.
  // Trap: a signature says nothing of when it was made, so an expired certificate still vouches.
  std::string ChainProblem(std::span<const Certificate> between,
                           std::span<const Certificate> roots) const;

 private:
  explicit Certificate(std::shared_ptr<x509_st> certificate)
      : certificate_(std::move(certificate)) {}
  std::shared_ptr<x509_st> certificate_;
};

}  // namespace oscar
