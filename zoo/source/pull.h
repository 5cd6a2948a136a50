// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// An entry out of a zoo, as the directory that was published. The zoo may be anyone's and
// anywhere: size and digest of every file are checked before a byte of it is parsed, and the
// artifact is then opened like any other.
//
// What has come lies in OUTPUT.partial until all of it is there, so a pull that broke off goes on.
#pragma once

#include <filesystem>
#include <string>

#include "zoo/check/artifact_check.h"
#include "zoo/source/fetch.h"

namespace oscar {

struct Pulled {
  ZooEntry entry;
  std::string yanked;  // why; "" if it stands
  FetchCounts counts;
};

// Writes the directory `output`, which must not exist, or nothing but OUTPUT.partial. Throws
// InputError, ResourceError, and what the options' functions throw.
Pulled Pull(const ZooSource& source, const ZooReference& reference,
            const std::filesystem::path& output, const FetchOptions& options = {});

// What an entry says that its report passed.
ValidationDemands DemandsOf(const ZooEntry& entry, std::string_view what);

// That an entry says what its manifest and report say, and that it may be in a zoo. Throws
// InputError naming `what`.
void CheckEntryIsOf(const ZooEntry& entry, const CheckedArtifact& artifact, std::string_view what);

}  // namespace oscar
