// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads trust.yaml, which holds a TrustPolicy, and the file that remembers the policy's past
// decisions.
//
//     rules:
//       "Qwen/*":                  # ORG/MODEL, ORG/* or *; the most specific match applies
//         level: enforce           # off, warn or enforce
//         keys: [alice.pub]        # PEM files, from this file's folder
//         identities:              # signers by certificate
//           - {name: release@example.org, roots: [root.crt]}
//         signatures: 1            # number of different signers required
//         lowest: 1.2.0            # lower versions are refused
//     snapshot:                    # requires a signed list of the zoo's versions
//       keys: [zoo.pub]
//     memory: trust.seen.json      # highest versions seen; this is the default
//
// Unknown keys, aliases, tags and repeated keys are errors that name the file.
#pragma once

#include <filesystem>
#include <string>

#include "zoo/trust/trust_policy.h"

namespace oscar {

struct TrustFile {
  TrustPolicy policy;
  std::filesystem::path memory_file;  // "" for a policy that was not read from a file
};

// Adds a PEM key to a rule, and the file's name to the policy's key names. Throws InputError.
void AddKey(const std::filesystem::path& file, TrustRule* rule, TrustPolicy* policy);

TrustFile ReadTrustFile(const std::filesystem::path& file);  // throws UsageError, InputError

TrustMemory ReadMemory(const TrustFile& file);  // empty if there is none yet
// Replaces the memory file. Does nothing for a policy that was not read from a file.
void WriteMemory(const TrustFile& file, const TrustMemory& memory);

}  // namespace oscar
