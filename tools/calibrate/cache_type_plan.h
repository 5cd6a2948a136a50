// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Chooses the per-layer types of a runtime's cache by their cost to the next token. Runs of the
// model over its text measure every type on each single side of a layer, then whole caches.
#pragma once

#include <string_view>

#include "calib/held_out.h"
#include "calib/job/job_directory.h"
#include "calib/run/calibrate.h"
#include "capture/files/strict_json.h"
#include "tools/cli/command.h"

namespace oscar {

// A request for per-layer cache types: for this runtime ("": not requested), within a budget in
// bits per value.
struct CacheTypesWanted {
  std::string_view runtime;
  double bits = 0;
};

// Throws UsageError if the runtime cannot store such layers, or needs more bits for them.
void CheckCacheTypes(const CacheTypesWanted& wanted, const CalibrationInput& input);

// Returns serving.cache_types of report.json (export/artifact/cache_type_record.h). Call it after
// all layers are done. Throws Interrupted; the job keeps the layers.
Json PlanCacheTypes(const CacheTypesWanted& wanted, const CalibrationInput& input,
                    const HeldOutSplit& split, const JobDirectory& job, CommandContext& context);

}  // namespace oscar
