// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A validation by several processes. Each runs the exact model and some of the other arms over all
// of the text, so a single process measures each number. MergeArms makes the common report.
#pragma once

#include <cstddef>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

struct ArmsOfRank {
  int rank = 0, ranks = 1;
};

// The member of a report with its arms' places among those of all processes, until MergeArms.
inline constexpr const char* kArmPlaces = "places";

// Returns which of the `arms` arms this process runs: ascending indices, the exact model first.
// `recall`: arms that also run the recall tasks, which cost most. Throws UsageError if there are
// too few arms.
std::vector<size_t> ShareOfArms(const ArmsOfRank& share, size_t arms,
                                const std::vector<size_t>& recall);

// Merges the results of ValidateModel or ValidateDump of all ranks; rank 0's comes first. Throws
// InputError if their exact models differ.
Json MergeArms(std::vector<Json> validations);

}  // namespace oscar
