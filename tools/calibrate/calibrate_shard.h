// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs one job of an array: calibrates part of the documents (shard_directory.h).
#pragma once

#include "tools/calibrate/calibrate_options.h"
#include "tools/calibrate/calibrate_subject.h"
#include "tools/cli/command.h"

namespace oscar {

// Runs --shard. If the shard already exists, only reports that, so that a job array can be started
// again unchanged.
CommandResult RunShard(const CalibrateOptions& options, const Places& places,
                       CommandContext& context);

}  // namespace oscar
