// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a calibration and writes its artifact: in one process, on rank 0 of several ranks, or from
// the results of shards. Also merges artifacts.
#pragma once

#include "tools/calibrate/calibrate_options.h"
#include "tools/calibrate/calibrate_subject.h"
#include "tools/cli/command.h"

namespace oscar {

// Runs only on rank 0 of `group`.
CommandResult RunToArtifact(const CalibrateOptions& options, const Places& places, RankGroup& group,
                            CommandContext& context);

// Runs --merge of artifacts.
CommandResult MergeMoments(const CalibrateOptions& options, CommandContext& context);

}  // namespace oscar
