// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Divides a validation among several processes. Each process runs the exact model and some of the
// other arms on all texts, so all numbers of an arm come from one process. MergeArms makes the
// common report.
#pragma once

#include <cstddef>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

struct ArmsOfRank {
  int rank = 0, ranks = 1;
};

// The member of a process's report that lists its arms' indices among all arms. MergeArms removes
// it.
inline constexpr const char* kArmPlaces = "places";

// Returns the arms that this process runs, as indices into all `arms` arms: 0, the exact model, and
// its share of the others in ascending order. The arms in `recall` also run the recall tasks, which
// take most of the time, so they are divided first. Throws UsageError if there are fewer other arms
// than processes.
std::vector<size_t> ShareOfArms(const ArmsOfRank& share, size_t arms,
                                const std::vector<size_t>& recall);

// Merges what ValidateModel or ValidateDump returned in each process, in the order of ranks. Throws
// InputError if the results of the exact model differ.
Json MergeArms(std::vector<Json> validations);

}  // namespace oscar
