// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A signed list of a zoo's versions and yanks, with an expiry date. Until a snapshot expires, a
// mirror could still offer it and hide what is newer; later it cannot. The file kSnapshotFile is a
// bundle whose payload is an in-toto Statement v1. It has a subject NAME@X.Y.Z with the identity
// for each version that is not yanked, the two dates, and the yanked versions, {"NAME@X.Y.Z":
// {"identity", "reason"}}.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "zoo/signing/bundle.h"
#include "zoo/store/zoo.h"

namespace oscar {

struct Snapshot {
  int64_t created_unix = 0, expires_unix = 0;  // seconds
  // Identity by version, for each ORG/MODEL. Yanked versions are left out.
  std::map<std::string, std::map<ZooVersion, std::string>> entries;
  struct Yanked {
    std::string identity, reason;
  };
  std::map<std::string, Yanked> yanked = {};  // by NAME@X.Y.Z

  // Whether the snapshot lists this version with this identity, yanked or not.
  bool Lists(const ZooName& name, const ZooVersion& version, const std::string& identity) const;
  bool TookBack(const ZooName& name, const ZooVersion& version, const std::string& identity) const;
};

Snapshot SnapshotOf(const Zoo& zoo, int64_t created_unix, int64_t expires_unix);
std::string SnapshotText(const Snapshot& snapshot);
Snapshot ParseSnapshot(std::string_view payload, std::string_view what);  // throws InputError

// Replaces the zoo's snapshot with a single rename. Throws InputError, ResourceError.
void WriteSnapshot(const Zoo& zoo, const Snapshot& snapshot, const Signer& signer);

}  // namespace oscar
