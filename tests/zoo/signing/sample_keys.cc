// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/zoo/signing/sample_keys.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <stdexcept>

namespace oscar {
namespace {

void Must(bool good) {
  if (!good) throw std::runtime_error("OpenSSL made no test key or certificate");
}

template <typename Write>
std::string PemOf(Write write) {
  BIO* bio = BIO_new(BIO_s_mem());
  Must(write(bio) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string pem(data, static_cast<size_t>(size));
  BIO_free(bio);
  return pem;
}

using KeyPtr = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;
using X509Ptr = std::unique_ptr<X509, void (*)(X509*)>;

KeyPtr ReadKey(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  KeyPtr key(PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr), EVP_PKEY_free);
  BIO_free(bio);
  Must(key != nullptr);
  return key;
}

X509Ptr ReadX509(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509Ptr certificate(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr), X509_free);
  BIO_free(bio);
  Must(certificate != nullptr);
  return certificate;
}

void Extend(X509* certificate, X509* issuer, int nid, const std::string& value) {
  if (value.empty()) return;
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  Must(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

// Returns a new key and its certificate, self-signed if there is no issuer.
Issuer Certified(const CertificateRecipe& recipe, const Issuer* issuer) {
  static long serial = 1;
  const std::string pem = NewKeyPem();
  const KeyPtr key = ReadKey(pem);
  const KeyPtr signing = ReadKey(issuer == nullptr ? pem : issuer->key);
  const X509Ptr certificate(X509_new(), X509_free);
  X509* x = certificate.get();
  X509_set_version(x, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(x), recipe.from_days * 86400);
  X509_gmtime_adj(X509_getm_notAfter(x), recipe.to_days * 86400);
  X509_set_pubkey(x, key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(recipe.subject.c_str()), -1, -1,
                             0);
  const X509Ptr parent = ReadX509(issuer == nullptr ? PemOf([&](BIO* bio) {
    X509_set_issuer_name(x, X509_get_subject_name(x));
    Must(X509_sign(x, signing.get(), EVP_sha256()) > 0);
    return PEM_write_bio_X509(bio, x);
  })
                                                    : issuer->certificate);
  X509_set_issuer_name(x, X509_get_subject_name(parent.get()));
  Extend(x, parent.get(), NID_basic_constraints,
         recipe.authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
  Extend(x, parent.get(), NID_key_usage, recipe.key_usage);
  Extend(x, parent.get(), NID_ext_key_usage, recipe.extended_key_usage);
  Extend(x, parent.get(), NID_subject_alt_name, recipe.names);
  Must(X509_sign(x, signing.get(), EVP_sha256()) > 0);
  return {pem, PemOf([&](BIO* bio) { return PEM_write_bio_X509(bio, x); })};
}

}  // namespace

std::string NewKeyPem(const std::string& curve, const std::string& type) {
  const KeyPtr key(type == "EC" ? EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", curve.c_str())
                                : EVP_PKEY_Q_keygen(nullptr, nullptr, type.c_str()),
                   EVP_PKEY_free);
  Must(key != nullptr);
  return PemOf([&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

std::string PublicPem(const std::string& private_pem) {
  const KeyPtr key = ReadKey(private_pem);
  return PemOf([&](BIO* bio) { return PEM_write_bio_PUBKEY(bio, key.get()); });
}

std::string EncryptedPem(const std::string& private_pem, const std::string& password) {
  const KeyPtr key = ReadKey(private_pem);
  return PemOf([&](BIO* bio) {
    return PEM_write_bio_PKCS8PrivateKey(bio, key.get(), EVP_aes_256_cbc(), password.c_str(),
                                         static_cast<int>(password.size()), nullptr, nullptr);
  });
}

PrivateKey KeyOf(const std::string& pem) { return PrivateKey::FromPem(pem, "", "a test key"); }
Signer NewSigner() { return {KeyOf(NewKeyPem()), {}}; }

Issuer NewRoot(const CertificateRecipe& recipe) { return Certified(recipe, nullptr); }
Issuer Issued(const Issuer& issuer, const CertificateRecipe& recipe) {
  return Certified(recipe, &issuer);
}

Signer CertifiedSigner(const Issuer& signer, const std::vector<Issuer>& between) {
  Signer out{KeyOf(signer.key), RootsOf(signer)};
  for (const Issuer& one : between) out.chain.push_back(RootsOf(one).front());
  return out;
}

std::vector<Certificate> RootsOf(const Issuer& root) {
  return Certificate::FromPem(root.certificate, "a test certificate");
}

}  // namespace oscar
