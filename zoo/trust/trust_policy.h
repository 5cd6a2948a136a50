// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A trust policy says which signers to trust for which names. Judge() applies it to a version of a
// zoo. It protects against attacks of The Update Framework (specification 1.0.33, section 1.5.2): a
// version without a trusted signature, a version older than one seen before (rollback), a newer
// version that is hidden (freeze), and files of another version or name (mix and match). It also
// refuses names that only look like trusted ones.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "linalg/base/error.h"
#include "zoo/signing/signing_key.h"
#include "zoo/signing/trust_error.h"
#include "zoo/store/zoo_format.h"
#include "zoo/trust/snapshot.h"

namespace oscar {

enum class TrustLevel { kOff, kWarn, kEnforce };

// Accepts a signer whose certificate is issued under one of the roots and contains `name`
// (Certificate::names()).
struct TrustedIdentity {
  std::string name;
  std::vector<Certificate> roots;
};

struct TrustRule {
  TrustLevel level = TrustLevel::kEnforce;
  std::vector<PublicKey> keys;
  std::vector<TrustedIdentity> identities;
  size_t signatures = 1;             // number of different trusted signers needed
  std::optional<ZooVersion> lowest;  // lower versions are refused
};

struct TrustPolicy {
  // By ORG/MODEL, ORG/* or *; the most specific rule applies. Names without a rule are not checked.
  std::map<std::string, TrustRule> rules;
  std::optional<TrustRule> snapshot;  // for the zoo's snapshot; without it none is required
  std::map<std::string, std::string> key_names = {};  // names of key files, by PublicKey::id()

  // Names the signer for a verdict: "alice.pub (0123456789abcdef)", or the certificate's name.
  std::string SignerText(const std::string& signer) const;
  const TrustRule* RuleOf(const ZooName& name) const;  // null if no rule applies
};

// The results of earlier trust decisions. They protect readers against rollbacks.
struct TrustMemory {
  struct Seen {
    ZooVersion version;  // the highest version seen
    std::string identity;
  };
  std::map<std::string, Seen> names;              // by ORG/MODEL
  std::map<std::string, int64_t> snapshots_unix;  // date of each signer's newest snapshot

  void Remember(const ZooEntry& entry);
  void Remember(const Snapshot& snapshot, const std::string& signer);
};
Json MemoryToJson(const TrustMemory& memory);
TrustMemory ParseMemory(std::string_view text, std::string_view what);  // throws InputError

// The result of checking a zoo's snapshot: its content and signer, or why it is not trusted.
struct SnapshotCheck {
  std::optional<Snapshot> snapshot;
  std::string signer;
  std::optional<TrustError> problem;
};
// `text`: the zoo's snapshot, if it has one. Nothing is checked if the policy has no rule for it.
SnapshotCheck CheckSnapshot(const TrustPolicy& policy, const TrustMemory& memory,
                            const std::optional<std::string>& text, int64_t now_unix);

struct TrustQuestion {
  const ZooEntry& entry;
  std::span<const std::string> bundles;  // texts of all signatures of the version
  bool latest = false;                   // requested as the latest, not by its number
  const SnapshotCheck& snapshot;         // snapshot of this zoo, checked under the same policy
  std::string_view yanked = {};          // the reason according to the zoo; "" if not yanked
};

struct TrustVerdict {
  TrustLevel level = TrustLevel::kOff;
  ExitCode code = ExitCode::kDone;   // kDone, or the problem: kUnsigned to kLookAlike
  std::string problem;               // description of the problem
  std::vector<std::string> signers;  // trusted signers: key ids and identity names
  std::string note = {};             // why a lower latest version is accepted, or ""

  bool trusted() const { return level != TrustLevel::kOff && code == ExitCode::kDone; }
  bool refused() const { return level == TrustLevel::kEnforce && code != ExitCode::kDone; }
  // TRUSTED, UNSIGNED, UNTRUSTED, or UNCHECKED if no rule applies.
  std::string word() const;
  // Text to print after word(): the signers or the problem; "" if no rule applies.
  std::string Reason(const TrustPolicy& policy) const;
};

TrustVerdict Judge(const TrustPolicy& policy, const TrustMemory& memory,
                   const TrustQuestion& question);

// Returns the payload of a bundle and the signer, which `rule` trusts. Throws TrustError if it
// trusts none.
struct Vouched {
  std::string payload, signer;
};
Vouched CheckVouched(std::string_view bundle, const TrustRule& rule, std::string_view what);

}  // namespace oscar
