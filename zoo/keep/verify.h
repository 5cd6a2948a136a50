// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A whole zoo, or a part of it, checked from its bytes. A publisher may be at work or may
// have been cut off; what he leaves (blobs nobody names, a pointer that lags) is no defect.
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
  std::vector<ZooProblem> notes;         // no defects: a pointer that lags, strangers
  std::vector<FileDigest> unreferenced;  // blobs no entry names; looked for only over all
};

// With a model at hand: its geometry, and how a validation on it is made.
struct Remeasure {
  ModelGeometry model;
  MeasureFunction measure;
};

// One version; with no version every version of the name; without a reference the zoo. Every file:
// size, digest, and then the whole artifact (CheckArtifact) and what the entry says of it; with
// `remeasure` the validation of sound entries is made again and compared. Throws InputError if the
// zoo has no such entry, and what measuring throws but InputError.
Verified Verify(const Zoo& zoo, const std::optional<ZooReference>& reference,
                const std::optional<Remeasure>& remeasure = std::nullopt);

}  // namespace oscar
