// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The verbs sign and snapshot of oscar-zoo, and the signature checks of verify and pull. --trust
// FILE (or OSCAR_TRUST in the environment) gives a policy; --public-key and --root check without
// one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/cli/command.h"
#include "tools/zoo/trust_file.h"
#include "tools/zoo/zoo_options.h"
#include "zoo/signing/trust_error.h"
#include "zoo/store/zoo.h"

namespace oscar {

CommandResult SignVerb(const ZooOptions& options, CommandContext& context);
CommandResult SnapshotVerb(const ZooOptions& options, CommandContext& context);

// Returns the command that signs a new snapshot if the zoo's snapshot is outdated for this version.
// Returns "" if it is not, or if there is neither a snapshot nor a key. If the key is unknown, the
// command has KEY instead, with a comment that names the signer of the last snapshot.
std::string SnapshotCommand(const ZooOptions& options, const Zoo& zoo, const ZooName& name,
                            const ZooVersion& version);

// Runs `verify --directory DIR --signature FILE` on a signed directory that is in no zoo.
CommandResult VerifyDirectory(const ZooOptions& options, CommandContext& context);

// Returns the trust policy that the options name; empty if they name none.
std::optional<TrustFile> TrustOf(const ZooOptions& options);

// The signatures of a version, from any kind of zoo.
struct SignatureTexts {
  std::vector<std::string> bundles;
  std::optional<std::string> snapshot;
  std::string yanked = {};  // the reason according to the zoo
};

// Judges a version, and remembers it if it is trusted. `latest`: whether it was requested without a
// version number. Throws TrustError if it is refused. Otherwise logs a version that is not trusted
// (level `warn`).
TrustVerdict DemandTrust(const TrustFile& trust, const ZooEntry& entry, const SignatureTexts& texts,
                         bool latest, Log* log);

// The verdict on a version that `verify` checks. JudgeVersions returns them in the order of
// versions.
struct VersionVerdict {
  ZooName name;
  ZooVersion version;
  TrustVerdict verdict;
};
std::vector<VersionVerdict> JudgeVersions(const TrustFile& trust, const Zoo& zoo,
                                          const std::optional<ZooReference>& reference);
Json VerdictsToJson(std::span<const VersionVerdict> verdicts);
// Returns kDone, or the code of the first refused version.
ExitCode CodeOf(std::span<const VersionVerdict> verdicts);

}  // namespace oscar
