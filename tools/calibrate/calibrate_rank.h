// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of a calibration that only runs with several ranks need: the work of ranks other than
// rank 0, and what they report to rank 0 at the end.
#pragma once

#include <vector>

#include "capture/ranks/rank_group.h"
#include "tools/calibrate/calibrate_options.h"
#include "tools/calibrate/calibrate_steps.h"
#include "tools/cli/command.h"

namespace oscar {

// Runs on every rank except rank 0, which owns the job and makes the artifact (RunToArtifact).
CommandResult RunRank(const CalibrateOptions& options, RankGroup& group, CommandContext& context);

// Returns one rank for each copy of the model's files, including rank 0. These ranks compute
// digests of their copies in the background. The copies must be equal, because some weights
// (experts, embeddings) are loaded by only one rank. All ranks must call this.
std::vector<int> DigestingRanks(const RankGroup& group, const Opened& opened);
// Runs only on rank 0. Throws InputError naming a rank whose digests differ from `own`.
void CompareDigests(const RankGroup& group, const std::vector<int>& ranks, const Json& own);

// Returns a record of the work that the other ranks did.
Json WorkOfOthers(const RankGroup& group);

}  // namespace oscar
