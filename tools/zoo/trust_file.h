// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// trust.yaml, the file of a TrustPolicy, and the memory of what was believed under it.
//
//     rules:
//       "Qwen/*":                  # ORG/MODEL, ORG/* or *; the most exact one that fits holds
//         level: enforce           # off, warn or enforce
//         keys: [alice.pub]        # PEM files, from this file's folder
//         identities:              # signers by certificate
//           - {name: release@example.org, roots: [root.crt]}
//         signatures: 1            # by so many different ones of them
//         lowest: 1.2.0            # no lower version is taken
//     snapshot:                    # a signed list of the zoo's versions is asked for
//       keys: [zoo.pub]
//     memory: trust.seen.json      # highest versions seen; this is the default
//
// Unknown keys, aliases, tags and a key given twice are errors that name the file.
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
// Replaces the whole memory file. Does nothing for a policy that was not read from a file.
void WriteMemory(const TrustFile& file, const TrustMemory& memory);

}  // namespace oscar
