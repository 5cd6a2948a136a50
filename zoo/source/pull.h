// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Pulls an entry from a zoo into a directory with the published artifact. The zoo is not trusted.
// The size and digest of every file are checked before any of it is parsed. Then the artifact gets
// the same checks as any other.
//
// Received files stay in OUTPUT.partial until all have arrived, so that an interrupted pull can be
// resumed.
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

// Writes the directory `output`, which must not exist. A failed pull leaves only OUTPUT.partial.
// Throws InputError, ResourceError, and what the functions in `options` throw.
Pulled Pull(const ZooSource& source, const ZooReference& reference,
            const std::filesystem::path& output, const FetchOptions& options = {});

// Returns the gate that the report passed according to the entry, as a demand on the report.
ValidationDemands DemandsOf(const ZooEntry& entry, std::string_view what);

// Checks that an entry agrees with its artifact's manifest and report, and that a zoo may hold it.
// Throws InputError naming `what`.
void CheckEntryIsOf(const ZooEntry& entry, const CheckedArtifact& artifact, std::string_view what);

}  // namespace oscar
