// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A calibration to its artifact: of one process, of rank 0 of some, or of what shards have
// observed; and the sum of artifacts.
#pragma once

#include "tools/calibrate/calibrate_options.h"
#include "tools/calibrate/calibrate_subject.h"
#include "tools/cli/command.h"

namespace oscar {

// On rank 0 of `group`.
CommandResult RunToArtifact(const CalibrateOptions& options, const Places& places, RankGroup& group,
                            CommandContext& context);

// --merge of artifacts.
CommandResult MergeMoments(const CalibrateOptions& options, CommandContext& context);

}  // namespace oscar
