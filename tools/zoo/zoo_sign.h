// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-zoo's verbs sign and snapshot, and what verify and pull ask of signatures: --trust FILE (or
// the environment's OSCAR_TRUST), or --public-key and --root for a single answer.
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

// The command that signs the zoo's list anew, where the signed one does not say what the zoo says
// of this version; "" where it does, or where there is none and no key is at hand. Whose key is not
// known stands there as KEY, with the one that signed last.
std::string SnapshotCommand(const ZooOptions& options, const Zoo& zoo, const ZooName& name,
                            const ZooVersion& version);

// `verify --directory DIR --signature FILE`: a signed directory that is in no zoo.
CommandResult VerifyDirectory(const ZooOptions& options, CommandContext& context);

// Whom the options say to trust; nothing if they say nothing.
std::optional<TrustFile> TrustOf(const ZooOptions& options);

// What a zoo holds of signatures for a version, wherever it was read from.
struct SignatureTexts {
  std::vector<std::string> bundles;
  std::optional<std::string> snapshot;
  std::string yanked = {};  // why, as the zoo says
};

// Judges a version, and remembers it if it is believed. `latest`: it was not asked for by its
// number. Throws TrustError for what is refused; says UNSIGNED or UNTRUSTED under `warn`.
TrustVerdict DemandTrust(const TrustFile& trust, const ZooEntry& entry, const SignatureTexts& texts,
                         bool latest, Log* log);

// Of each version that `verify` looks at, in its order.
struct VersionVerdict {
  ZooName name;
  ZooVersion version;
  TrustVerdict verdict;
};
std::vector<VersionVerdict> JudgeVersions(const TrustFile& trust, const Zoo& zoo,
                                          const std::optional<ZooReference>& reference);
Json VerdictsToJson(std::span<const VersionVerdict> verdicts);
// kDone, or the code of the first that is refused.
ExitCode CodeOf(std::span<const VersionVerdict> verdicts);

}  // namespace oscar
