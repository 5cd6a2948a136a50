// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A signature file: a Sigstore bundle (JSON, media type v0.3) that holds a DSSE envelope (DSSE
// v1.0, protocol.md) around a payload. Supports the methods `key` and `certificate` of OpenSSF
// Model Signing v1.0, section 4.1. Keyless signatures (Fulcio, Rekor) are refused with an
// explanation. Trap: parsing a bundle does not verify it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zoo/signing/signing_key.h"
#include "zoo/signing/trust_error.h"

namespace oscar {

struct SignedBundle {
  std::string payload;             // the signed bytes
  std::string signature;           // DER; the first signature of the envelope
  std::string key_hint;            // PublicKey::id() of the signer; may be ""
  std::vector<Certificate> chain;  // begins with the signer's certificate; empty for method `key`
};

// Throws InputError naming `what` if the text is not a bundle, has another media or payload type,
// has no signature, or has an unknown member.
SignedBundle ParseBundle(std::string_view text, std::string_view what);

// Checks that the bundle was signed with `key`. Throws TrustError (kWrongKey, kAltered).
void CheckSignedWith(const SignedBundle& bundle, const PublicKey& key, std::string_view what);

// Checks that the bundle was signed with a certificate that chains to one of `roots`. Throws
// TrustError.
void CheckSignedUnder(const SignedBundle& bundle, std::span<const Certificate> roots,
                      std::string_view what);

// A signing key, and its certificates if it has any. `chain` starts with the key's certificate,
// which intermediate certificates may follow.
struct Signer {
  PrivateKey key;
  std::vector<Certificate> chain;
};

// Throws InputError if the certificate belongs to another key or must not be used to sign.
void CheckSigner(const Signer& signer, std::string_view what);
std::string SignedBundleText(std::string_view payload, const Signer& signer);

}  // namespace oscar
