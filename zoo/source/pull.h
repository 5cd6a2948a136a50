// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Pulls an entry from a zoo into the directory that was published. The zoo is not trusted: size and
// digest of every file are checked before a byte of it is parsed, and the artifact is then opened
// like any other.
//
// Received files stay in OUTPUT.partial until all have arrived, so an interrupted pull resumes.
#pragma once

#include <filesystem>
#include <string>

#include "zoo/check/artifact_check.h"
#include "zoo/source/fetch.h"

namespace oscar {

struct Pulled {
  ZooEntry entry;
  std::string yanked;  // the reason; "" if not yanked
  FetchCounts counts;
};

// Writes the directory `output`, which must not exist. A failure leaves only OUTPUT.partial. Throws
// InputError, ResourceError, and whatever the options' functions throw.
Pulled Pull(const ZooSource& source, const ZooReference& reference,
            const std::filesystem::path& output, const FetchOptions& options = {});

// Returns the demands that the report met, according to the entry.
ValidationDemands DemandsOf(const ZooEntry& entry, std::string_view what);

// Checks that an entry agrees with its manifest and report, and that it may be published in a zoo.
// Throws InputError naming `what`.
void CheckEntryIsOf(const ZooEntry& entry, const CheckedArtifact& artifact, std::string_view what);

}  // namespace oscar
