// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/signing/signing_key.h"

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>

#include "capture/files/digest.h"
#include "capture/files/quote.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

template <typename T>
using SslPtr = std::unique_ptr<T, void (*)(T*)>;

using Bio = std::unique_ptr<BIO, int (*)(BIO*)>;

Bio ReadFrom(std::string_view bytes) {
  Bio bio(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())), BIO_free);
  OSCAR_CHECK(bio != nullptr);
  return bio;
}

std::string Written(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

// Returns OpenSSL's last error as text.
std::string Reason() {
  std::array<char, 200> text{};
  ERR_error_string_n(ERR_peek_last_error(), text.data(), text.size());
  ERR_clear_error();
  return text.data();
}

struct Curve {
  const char* name;  // OpenSSL's name
  const EVP_MD* (*digest)();
};
constexpr Curve kCurves[] = {
    {"prime256v1", EVP_sha256}, {"secp384r1", EVP_sha384}, {"secp521r1", EVP_sha512}};

// Returns null for a key type that cannot be used to sign here.
const Curve* CurveOf(EVP_PKEY* key) {
  std::array<char, 64> name{};
  if (EVP_PKEY_get_base_id(key) != EVP_PKEY_EC ||
      EVP_PKEY_get_group_name(key, name.data(), name.size(), nullptr) != 1) {
    return nullptr;
  }
  for (const Curve& curve : kCurves)
    if (std::string_view(curve.name) == name.data()) return &curve;
  return nullptr;
}

// Passes the password to OpenSSL. Without a password, reading an encrypted key fails instead of
// prompting on the terminal.
int GivePassword(char* buffer, int size, int /*writing*/, void* password) {
  const auto& text = *static_cast<const std::string*>(password);
  if (text.empty() || text.size() > static_cast<size_t>(size)) return -1;
  text.copy(buffer, text.size());
  return static_cast<int>(text.size());
}

std::string Text(const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)),
          static_cast<size_t>(ASN1_STRING_length(string))};
}

}  // namespace

PublicKey::PublicKey(std::shared_ptr<EVP_PKEY> key, std::string_view what) : key_(std::move(key)) {
  if (CurveOf(key_.get()) == nullptr) {
    throw InputError(
        fmt::format("{}: this is a {} key, expected an elliptic curve key on P-256, P-384 or "
                    "P-521; make one with openssl ecparam -name prime256v1 -genkey -noout",
                    what, EVP_PKEY_get0_type_name(key_.get())));
  }
  // The key's id must not depend on the encoding that its file uses, so one encoding is fixed here.
  EVP_PKEY_set_utf8_string_param(key_.get(), OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT,
                                 OSSL_PKEY_EC_POINT_CONVERSION_FORMAT_UNCOMPRESSED);
  EVP_PKEY_set_utf8_string_param(key_.get(), OSSL_PKEY_PARAM_EC_ENCODING,
                                 OSSL_PKEY_EC_ENCODING_GROUP);
  const Bio bio(BIO_new(BIO_s_mem()), BIO_free);
  OSCAR_CHECK(bio != nullptr && PEM_write_bio_PUBKEY(bio.get(), key_.get()) == 1);
  pem_ = Written(bio.get());
  id_ = Sha256Hex(pem_);
}

PublicKey PublicKey::FromPem(const std::string& pem, std::string_view what) {
  std::shared_ptr<EVP_PKEY> key(PEM_read_bio_PUBKEY(ReadFrom(pem).get(), nullptr, nullptr, nullptr),
                                EVP_PKEY_free);
  if (key == nullptr) {
    throw InputError(
        fmt::format("{}: contains no PEM public key (BEGIN PUBLIC KEY): {}", what, Reason()));
  }
  return {std::move(key), what};
}

bool PublicKey::Verifies(std::string_view message, std::string_view signature) const {
  const SslPtr<EVP_MD_CTX> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  OSCAR_CHECK(context != nullptr);
  const EVP_MD* digest = CurveOf(key_.get())->digest();
  const bool good =
      EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, key_.get()) == 1 &&
      EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                       signature.size(), reinterpret_cast<const unsigned char*>(message.data()),
                       message.size()) == 1;
  ERR_clear_error();
  return good;
}

PrivateKey PrivateKey::FromPem(const std::string& pem, const std::string& password,
                               std::string_view what) {
  std::string given = password;
  std::shared_ptr<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(ReadFrom(pem).get(), nullptr, GivePassword, &given), EVP_PKEY_free);
  if (key == nullptr) {
    const bool encrypted = pem.find("ENCRYPTED") != pem.npos;
    throw InputError(
        fmt::format("{}: contains no readable PEM private key{}: {}", what,
                    encrypted ? (password.empty() ? " (it is encrypted; set OSCAR_KEY_PASSWORD)"
                                                  : " (it is encrypted; check OSCAR_KEY_PASSWORD)")
                              : "",
                    Reason()));
  }
  return PrivateKey(PublicKey(std::move(key), what));
}

std::string PrivateKey::Sign(std::string_view message) const {
  const SslPtr<EVP_MD_CTX> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_PKEY* key = public_key_.key_.get();
  const auto* bytes = reinterpret_cast<const unsigned char*>(message.data());
  size_t size = 0;
  OSCAR_CHECK(context != nullptr);
  const auto begin = [&] {
    return EVP_DigestSignInit(context.get(), nullptr, CurveOf(key)->digest(), nullptr, key) == 1;
  };
  OSCAR_CHECK(begin() && EVP_DigestSign(context.get(), nullptr, &size, bytes, message.size()) == 1);
  std::string signature(size, '\0');
  if (!begin() || EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()),
                                 &size, bytes, message.size()) != 1) {
    throw InputError(fmt::format("the private key cannot sign: {}", Reason()));
  }
  signature.resize(size);
  return signature;
}

Certificate Certificate::FromDer(std::string_view der, std::string_view what) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
  const auto* end = bytes + der.size();
  std::shared_ptr<X509> certificate(d2i_X509(nullptr, &bytes, static_cast<long>(der.size())),
                                    X509_free);
  if (certificate == nullptr || bytes != end)
    throw InputError(fmt::format("{}: not a DER certificate: {}", what, Reason()));
  return Certificate(std::move(certificate));
}

std::vector<Certificate> Certificate::FromPem(const std::string& pem, std::string_view what) {
  const Bio bio = ReadFrom(pem);
  std::vector<Certificate> certificates;
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr))
    certificates.push_back(Certificate({certificate, X509_free}));
  // OpenSSL stops both at the end of the text and at a damaged certificate. Only the error code
  // tells which.
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = Reason();
  if (certificates.empty() || !at_end) {
    throw InputError(fmt::format("{}: an error after {} PEM certificates (BEGIN CERTIFICATE): {}",
                                 what, certificates.size(), reason));
  }
  return certificates;
}

std::string Certificate::der() const {
  unsigned char* bytes = nullptr;
  const int size = i2d_X509(certificate_.get(), &bytes);
  OSCAR_CHECK(size > 0);
  std::string der(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

PublicKey Certificate::public_key(std::string_view what) const {
  std::shared_ptr<EVP_PKEY> key(X509_get_pubkey(certificate_.get()), EVP_PKEY_free);
  if (key == nullptr)
    throw InputError(fmt::format("{}: the certificate's key cannot be read: {}", what, Reason()));
  return {std::move(key), what};
}

std::vector<std::string> Certificate::names() const {
  std::vector<std::string> names;
  const X509_NAME* subject = X509_get_subject_name(certificate_.get());
  for (int i = X509_NAME_get_index_by_NID(subject, NID_commonName, -1); i >= 0;
       i = X509_NAME_get_index_by_NID(subject, NID_commonName, i)) {
    names.push_back(Text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, i))));
  }
  const SslPtr<GENERAL_NAMES> others(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate_.get(), NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  for (int i = 0; others != nullptr && i < sk_GENERAL_NAME_num(others.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(others.get(), i);
    if (name->type == GEN_EMAIL || name->type == GEN_URI || name->type == GEN_DNS)
      names.push_back(Text(name->d.ia5));
  }
  ERR_clear_error();
  return names;
}

bool Certificate::may_sign() const {
  // If the extension is missing, OpenSSL reports every usage as allowed. Here the certificate must
  // state a usage.
  X509* certificate = certificate_.get();
  const uint32_t flags = X509_get_extension_flags(certificate);
  if ((flags & EXFLAG_INVALID) != 0) return false;
  if ((flags & EXFLAG_KUSAGE) != 0 && (X509_get_key_usage(certificate) & KU_DIGITAL_SIGNATURE) != 0)
    return true;
  return (flags & EXFLAG_XKUSAGE) != 0 &&
         (X509_get_extended_key_usage(certificate) & XKU_CODE_SIGN) != 0;
}

std::string Certificate::ChainProblem(std::span<const Certificate> between,
                                      std::span<const Certificate> roots) const {
  const SslPtr<X509_STORE> store(X509_STORE_new(), X509_STORE_free);
  const SslPtr<X509_STORE_CTX> context(X509_STORE_CTX_new(), X509_STORE_CTX_free);
  const SslPtr<STACK_OF(X509)> untrusted(sk_X509_new_null(),
                                         [](STACK_OF(X509) * stack) { sk_X509_free(stack); });
  OSCAR_CHECK(store != nullptr && context != nullptr && untrusted != nullptr);
  for (const Certificate& root : roots)
    OSCAR_CHECK_EQ(X509_STORE_add_cert(store.get(), root.certificate_.get()), 1);
  for (const Certificate& one : between)
    OSCAR_CHECK(sk_X509_push(untrusted.get(), one.certificate_.get()) > 0);
  OSCAR_CHECK_EQ(
      X509_STORE_CTX_init(context.get(), store.get(), certificate_.get(), untrusted.get()), 1);
  tm valid_from{};
  if (ASN1_TIME_to_tm(X509_get0_notBefore(certificate_.get()), &valid_from) != 1)
    return "the time from which the certificate is valid cannot be read";
  X509_STORE_CTX_set_time(context.get(), 0, timegm(&valid_from));
  const bool good = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  return good ? "" : X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
}

}  // namespace oscar
