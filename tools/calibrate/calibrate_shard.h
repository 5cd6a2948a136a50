// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// One job of an array: a part of a calibration's documents, run and kept (shard_directory.h).
#pragma once

#include "tools/calibrate/calibrate_options.h"
#include "tools/calibrate/calibrate_subject.h"
#include "tools/cli/command.h"

namespace oscar {

// --shard. Where the shard is there already, that is said and nothing done, so that an array can be
// started again as it is.
CommandResult RunShard(const CalibrateOptions& options, const Places& places,
                       CommandContext& context);

}  // namespace oscar
