// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A signature as a file: a Sigstore bundle (JSON, media type v0.3) that holds a DSSE envelope (DSSE
// v1.0, protocol.md) around a payload. Methods of OpenSSF Model Signing v1.0, section 4.1: `key`
// and `certificate`; keyless signing (Fulcio, Rekor) is refused by name.
// Trap: what is parsed is not yet verified.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zoo/signing/signing_key.h"

namespace oscar {

struct SignedBundle {
  std::string payload;             // what is signed
  std::string signature;           // DER, the envelope's first
  std::string key_hint;            // PublicKey::id() of the signer; may be ""
  std::vector<Certificate> chain;  // the signer's first; empty for method `key`
};

// Throws InputError naming `what`: no bundle, another media or payload type, no signature, members
// nobody defined.
SignedBundle ParseBundle(std::string_view text, std::string_view what);

// That it is signed with `key`, or throws TrustError (kWrongKey, kAltered).
void CheckSignedWith(const SignedBundle& bundle, const PublicKey& key, std::string_view what);

// That it is signed with a certificate under one of `roots`. Throws TrustError.
void CheckSignedUnder(const SignedBundle& bundle, std::span<const Certificate> roots,
                      std::string_view what);

// Who signs. With a certificate, `chain` starts with it and may go on with those between it and the
// root.
struct Signer {
  PrivateKey key;
  std::vector<Certificate> chain;
};

// Throws InputError if the certificate is of another key or may not sign.
void CheckSigner(const Signer& signer, std::string_view what);
std::string SignedBundleText(std::string_view payload, const Signer& signer);

}  // namespace oscar
