// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks a whole zoo, or a part of it, from its bytes. A publisher may be active or interrupted.
// Its leftovers (blobs that no entry names, a pointer that lags) are not defects.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zoo/check/artifact_check.h"
#include "zoo/check/remeasure.h"
#include "zoo/store/zoo.h"

namespace oscar {

struct ZooProblem {
  std::string where;  // path below the zoo
  std::string what;
};

struct Verified {
  size_t entries = 0, blobs = 0;  // checked
  size_t measured = 0;            // entries whose validation was made again
  uint64_t bytes = 0;             // of those blobs
  std::vector<ZooProblem> problems;
  std::vector<ZooProblem> notes;         // not defects: a pointer that lags, unknown files
  std::vector<FileDigest> unreferenced;  // blobs that no entry names; filled only for a whole zoo
};

// For a model at hand: its geometry, and a function that validates on it.
struct Remeasure {
  ModelGeometry model;
  MeasureFunction measure;
};

// Verifies one version, without a version every version of the name, and without a reference the
// zoo. It checks every file's size and digest, then the whole artifact (CheckArtifact) and the
// entry's claims about it. With `remeasure` it repeats the validation of sound entries and
// compares. Throws InputError if the zoo has no such entry, and whatever measuring throws except
// InputError.
Verified Verify(const Zoo& zoo, const std::optional<ZooReference>& reference,
                const std::optional<Remeasure>& remeasure = std::nullopt);

}  // namespace oscar
