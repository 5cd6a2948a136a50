// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-calibrate doctor reports what a model is, what a calibration would do, what is missing, and
// the next command. It takes every option of oscar-calibrate, so that it describes the same run.
// Exit code 3 means that this model cannot be calibrated. Missing things (weights to download,
// memory, a GPU) are listed and do not change the exit code.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "calib/run/plan.h"
#include "calib/run/rank_plan.h"
#include "tools/calibrate/calibrate_options.h"
#include "tools/cli/verbs.h"

namespace oscar {

struct DoctorOptions {
  CalibrateOptions calibrate;
  bool json = false;
  bool tables = false;  // print all that is supported, without a model
  std::string into;     // a file with markers around the tables, or empty
};

// The inputs and the plan of a run, as for --dry-run.
struct PlannedRun {
  CalibrationInput input;
  CalibrationPlan plan;
  std::string self_generation;  // the cost of self-generated text, as lines; or empty
  std::vector<RankPlan> ranks;  // only if several were requested
};
using PlanFunction = std::function<PlannedRun(const CalibrateOptions& options, Log& log)>;

// `arguments`: those after the verb. The suggested command repeats them.
Verb DoctorVerb(DoctorOptions* options, std::vector<std::string> arguments, PlanFunction plan);

}  // namespace oscar
