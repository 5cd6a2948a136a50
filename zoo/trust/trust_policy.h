// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Whom to believe about which names, and the judgement of one version of a zoo by it. The attacks
// are those of The Update Framework (specification 1.0.33, section 1.5.2): a version that nobody
// trusted signed, one older than was seen before (rollback), a newer one hidden (freeze), files of
// another version or name (mix and match), and a name that only looks like a trusted one.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "linalg/error.h"
#include "zoo/signing/signing_key.h"
#include "zoo/store/zoo_format.h"
#include "zoo/trust/snapshot.h"

namespace oscar {

enum class TrustLevel { kOff, kWarn, kEnforce };

// Signers by certificate: under one of the roots, and naming `name` (Certificate::names()).
struct TrustedIdentity {
  std::string name;
  std::vector<Certificate> roots;
};

struct TrustRule {
  TrustLevel level = TrustLevel::kEnforce;
  std::vector<PublicKey> keys;
  std::vector<TrustedIdentity> identities;
  size_t signatures = 1;             // by so many different ones of the above
  std::optional<ZooVersion> lowest;  // no lower version is taken
};

struct TrustPolicy {
  // By ORG/MODEL, ORG/* or *; the most exact one that fits a name holds. Without one: kOff.
  std::map<std::string, TrustRule> rules;
  std::optional<TrustRule> snapshot;  // of the zoo; without it no snapshot is asked for
  std::map<std::string, std::string> key_names = {};  // files of keys, by PublicKey::id()

  // A signer of a verdict for people: "alice.pub (0123456789abcdef)", or the identity.
  std::string SignerText(const std::string& signer) const;
  const TrustRule* RuleOf(const ZooName& name) const;  // null without one
};

// What was believed before, kept beside the policy: a reader's protection against going back.
struct TrustMemory {
  struct Seen {
    ZooVersion version;  // the highest
    std::string identity;
  };
  std::map<std::string, Seen> names;              // by ORG/MODEL
  std::map<std::string, int64_t> snapshots_unix;  // date of the newest, by its signer

  void Remember(const ZooEntry& entry);
  void Remember(const Snapshot& snapshot, const std::string& signer);
};
Json MemoryToJson(const TrustMemory& memory);
TrustMemory ParseMemory(std::string_view text, std::string_view what);  // throws InputError

// The snapshot of a zoo under a policy: what it lists and who signed it, or why it is not believed.
struct SnapshotCheck {
  std::optional<Snapshot> snapshot;
  std::string signer;
  std::optional<TrustError> problem;
};
// `text`: the zoo's file, if it has one. Without a rule for snapshots nothing is checked.
SnapshotCheck CheckSnapshot(const TrustPolicy& policy, const TrustMemory& memory,
                            const std::optional<std::string>& text, int64_t now_unix);

struct TrustQuestion {
  const ZooEntry& entry;
  std::span<const std::string> bundles;  // texts of the version's signatures, of anybody
  bool latest = false;                   // asked for as the latest, not by its version
  const SnapshotCheck& snapshot;         // of the zoo, under the same policy
  std::string_view yanked = {};          // why, as the zoo says; "": it says that it stands
};

struct TrustVerdict {
  TrustLevel level = TrustLevel::kOff;
  ExitCode code = ExitCode::kDone;   // or what is wrong, kUnsigned to kLookAlike
  std::string problem;               // in words
  std::vector<std::string> signers;  // who vouches: ids of keys, names of identities
  std::string note = {};             // why a lower latest is believed; "" where nothing is lower

  bool trusted() const { return level != TrustLevel::kOff && code == ExitCode::kDone; }
  bool refused() const { return level == TrustLevel::kEnforce && code != ExitCode::kDone; }
  // TRUSTED, UNSIGNED, UNTRUSTED, or UNCHECKED where no rule holds.
  std::string word() const;
  // After the word: who signed, or what is wrong; "" where no rule holds.
  std::string Reason(const TrustPolicy& policy) const;
};

TrustVerdict Judge(const TrustPolicy& policy, const TrustMemory& memory,
                   const TrustQuestion& question);

// Who of a rule signed these bytes: the payload, or TrustError.
struct Vouched {
  std::string payload, signer;
};
Vouched CheckVouched(std::string_view bundle, const TrustRule& rule, std::string_view what);

}  // namespace oscar
