// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A validation by several processes: each runs the exact model and some of the other arms, over all
// of the text, so that every number is what one process measures; put together they are its report.
#pragma once

#include <cstddef>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

struct ArmsOfRank {
  int rank = 0, ranks = 1;
};

// Where a report keeps the places of its arms among those of all processes, until MergeArms.
inline constexpr const char* kArmPlaces = "places";

// Which of `arms` arms that process runs, ascending, the exact model's first. `recall`: those that
// also run the recall tasks, which cost most. UsageError where there are too few arms.
std::vector<size_t> ShareOfArms(const ArmsOfRank& share, size_t arms,
                                const std::vector<size_t>& recall);

// Of ValidateModel or ValidateDump of all ranks, rank 0's first. InputError where they saw another
// exact model.
Json MergeArms(std::vector<Json> validations);

}  // namespace oscar
