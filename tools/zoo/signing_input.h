// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads keys, certificates and signatures that the command line names: PEM files and bundles.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "zoo/signing/model_files.h"
#include "zoo/signing/trust_error.h"

namespace oscar {

// Reads a signing key. OSCAR_KEY_PASSWORD in the environment opens an encrypted key. `certificate`
// may be "". Throws InputError.
Signer ReadSigner(const std::string& key, const std::string& certificate,
                  const std::vector<std::string>& chain);

PublicKey ReadPublicKey(const std::filesystem::path& file);
std::vector<Certificate> ReadCertificates(const std::vector<std::string>& files);

// Checks that `bundle` signs the model: with `public_key`, or if that is "" under one of `roots`.
// Paths in `check` are as on the command line. Throws TrustError, InputError.
void CheckSignedModel(const std::filesystem::path& model, const std::string& bundle,
                      const std::string& public_key, const std::vector<std::string>& roots,
                      const ModelCheck& check);

}  // namespace oscar
