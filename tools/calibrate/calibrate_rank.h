// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of a calibration by several ranks that one process does not need: the ranks other than
// rank 0, and what they tell it at the end.
#pragma once

#include <vector>

#include "capture/ranks/rank_group.h"
#include "tools/calibrate/calibrate_options.h"
#include "tools/calibrate/calibrate_steps.h"
#include "tools/cli/command.h"

namespace oscar {

// Runs a rank other than rank 0, which has the job and makes the artifact (RunToArtifact).
CommandResult RunRank(const CalibrateOptions& options, RankGroup& group, CommandContext& context);

// Returns the ranks that read other files than rank 0 and take their digests beside the work:
// experts and embeddings are loaded by one rank alone. All ranks must call this.
std::vector<int> DigestingRanks(const RankGroup& group, const Opened& opened);
// Only on rank 0. Throws InputError naming a rank whose digests differ from `own`.
void CompareDigests(const RankGroup& group, const std::vector<int>& ranks, const Json& own);

// Returns what all ranks other than rank 0 did.
Json WorkOfOthers(const RankGroup& group);

}  // namespace oscar
