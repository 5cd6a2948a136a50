// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Keys, certificates and signatures as command lines name them: PEM files and bundles.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "zoo/signing/model_files.h"
#include "zoo/signing/trust_error.h"

namespace oscar {

// An encrypted key is opened with the environment's OSCAR_KEY_PASSWORD. `certificate` may be "".
// Throws InputError.
Signer ReadSigner(const std::string& key, const std::string& certificate,
                  const std::vector<std::string>& chain);

PublicKey ReadPublicKey(const std::filesystem::path& file);
std::vector<Certificate> ReadCertificates(const std::vector<std::string>& files);

// Checks that the bundle signs the model, with the key, or under the roots if `public_key` is "".
// Paths of `check` are as on the command line. Throws TrustError, InputError.
void CheckSignedModel(const std::filesystem::path& model, const std::string& bundle,
                      const std::string& public_key, const std::vector<std::string>& roots,
                      const ModelCheck& check);

}  // namespace oscar
