// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks the bytes of a whole zoo or a part of it. A publisher may be active or interrupted. Its
// leftovers (blobs that no entry names, an outdated pointer) are not defects.
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

// Verifies one version; without a version all versions of the name; without a reference the whole
// zoo. It checks every file's size and digest, then the whole artifact (CheckArtifact) and the
// entry's claims about it. With `remeasure` it repeats the validation of sound entries and
// compares. Throws InputError if the zoo has no such entry, and all errors of `remeasure` except
// InputError.
Verified Verify(const Zoo& zoo, const std::optional<ZooReference>& reference,
                const std::optional<Remeasure>& remeasure = std::nullopt);

}  // namespace oscar
