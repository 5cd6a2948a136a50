// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// An entry out of a zoo, as the directory that was published. The zoo may be anyone's; size
// and digest of every file are checked before a byte of it is parsed, and the artifact is then
// opened like any other.
#pragma once

#include <filesystem>

#include "zoo/artifact_check.h"
#include "zoo/zoo.h"

namespace oscar {

// Fills the empty directory `staging` with the entry's files, digests checked, and checks the
// artifact. Throws InputError naming the blob or the file.
CheckedArtifact Materialize(const std::filesystem::path& zoo, const ZooEntry& entry,
                            const std::filesystem::path& staging);

// Writes the directory `output`, which must not exist, or nothing. Throws InputError,
// ResourceError.
ZooEntry Pull(const Zoo& zoo, const ZooReference& reference, const std::filesystem::path& output);

// What an entry says that its report passed.
ValidationDemands DemandsOf(const ZooEntry& entry, std::string_view what);

// That an entry says what its manifest and report say, and that it may be in a zoo. Throws
// InputError naming `what`.
void CheckEntryIsOf(const ZooEntry& entry, const CheckedArtifact& artifact, std::string_view what);

}  // namespace oscar
