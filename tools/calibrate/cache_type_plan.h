// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Chooses a runtime's cache type for the keys and the values of each layer, by the cost to the next
// token. The model runs over calibration text to measure each type, first on the keys or values of
// one layer alone, then in plans for the whole cache.
#pragma once

#include <string_view>

#include "calib/held_out.h"
#include "calib/job/job_directory.h"
#include "calib/run/calibrate.h"
#include "capture/files/strict_json.h"
#include "tools/cli/command.h"

namespace oscar {

// A request for per-layer cache types. `runtime`: "" if not requested. `bits`: the budget in bits
// per value, including scales.
struct CacheTypesWanted {
  std::string_view runtime;
  double bits = 0;
};

// Throws UsageError if the runtime cannot store these layers with such types, or needs more bits
// than the budget.
void CheckCacheTypes(const CacheTypesWanted& wanted, const CalibrationInput& input);

// Returns serving.cache_types of report.json (export/artifact/cache_type_record.h). All layers must
// be done. Throws Interrupted if stopped; the finished layers stay in the job.
Json PlanCacheTypes(const CacheTypesWanted& wanted, const CalibrationInput& input,
                    const HeldOutSplit& split, const JobDirectory& job, CommandContext& context);

}  // namespace oscar
