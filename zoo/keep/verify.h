// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Verifies a zoo or a part of it, even while a publisher is active. What an active or interrupted
// publisher leaves (blobs that no entry names, an outdated pointer) is not a defect.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zoo/check/artifact_check.h"
#include "zoo/check/remeasure.h"
#include "zoo/store/zoo.h"

namespace oscar {

struct ZooProblem {
  std::string where;  // path relative to the zoo
  std::string what;
};

struct Verified {
  size_t entries = 0, blobs = 0;  // numbers of checked entries and blobs
  size_t measured = 0;            // entries whose validation was repeated
  uint64_t bytes = 0;             // total size of the checked blobs
  std::vector<ZooProblem> problems;
  std::vector<ZooProblem> notes;         // harmless: an outdated pointer, unknown files
  std::vector<FileDigest> unreferenced;  // blobs that no entry names; filled only for a whole zoo
};

// Repeats validations on a model that the user has.
struct Remeasure {
  ModelGeometry model;
  MeasureFunction measure;
};

// Verifies the version that `reference` names. Verifies all versions of the name if it names no
// version, and the whole zoo if it is absent. Checks every file's size and digest, then the whole
// artifact (CheckArtifact), then what the entry says about it.
//
// With `remeasure`, also repeats the validation of each entry without problems, and compares the
// results. Throws InputError if the zoo has no such entry. Passes on all errors of `remeasure`
// except InputError, which is listed as a problem.
Verified Verify(const Zoo& zoo, const std::optional<ZooReference>& reference,
                const std::optional<Remeasure>& remeasure = std::nullopt);

}  // namespace oscar
