// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The content of a model's signature: an in-toto Statement v1 with the predicate of OpenSSF Model
// Signing v1.0 (sections 5 and 6). It lists every file with its SHA-256, and a root digest over
// them. The standard also allows hashing files in shards, BLAKE2b and BLAKE3, which are refused
// with an explanation.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace oscar {

struct ModelStatement {
  std::string subject;                       // a name; NAME@X.Y.Z for a version in a zoo
  std::map<std::string, std::string> files;  // SHA-256 by path within the model, with '/'
  std::vector<std::string> ignored;          // paths within the model that were left out
};

// Paths that are never part of a model (section 6.2).
const std::vector<std::string>& AlwaysIgnored();

std::string StatementText(const ModelStatement& statement);

// Parses the payload of a bundle whose signature was checked. Throws InputError naming `what`. File
// names must stay within the model: no absolute path, no "..".
ModelStatement ParseStatement(std::string_view payload, std::string_view what);

}  // namespace oscar
