// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The steps that calibrations in a single process, in a rank and in a shard have in common: opening
// the inputs, comparing them with those of other runs, and resuming a job.
#pragma once

#include <future>
#include <memory>
#include <optional>

#include "calib/job/job_directory.h"
#include "calib/phase_times.h"
#include "calib/run/calibrate.h"
#include "tools/calibrate/calibrate_options.h"
#include "tools/calibrate/calibrate_plan.h"
#include "tools/calibrate/calibrate_subject.h"
#include "tools/cli/command.h"

namespace oscar {

// The inputs of a calibration, opened and checked. Nothing has been computed.
struct Opened {
  std::shared_ptr<const ModelInput> model;  // null for a dump
  Subject subject;
  OwnText own_text;
  HeldOutSplit split;

  const CalibrationInput& input() const { return subject.input; }
  size_t num_layers() const { return input().source->layers().size(); }
};

// Opens the inputs. If only samples were requested, shows them and returns nothing.
std::optional<Opened> Open(const CalibrateOptions& options, RankGroup& group,
                           CommandContext& context, PhaseTimes& times);

// Plans reads, memory and time. Logs the device first.
CalibrationPlan Plan(const Opened& opened, CommandContext& context);
// Shows the plan, for --dry-run.
CommandResult ShowPlan(const CalibrateOptions& options, const Opened& opened,
                       const CalibrationPlan& plan, CommandContext& context);

Json FingerprintOf(const Opened& opened);

// Returns the job of this run, which may be new or partly done.
JobDirectory JobOf(const CalibrateOptions& options, Opened& opened, const Places& places,
                   const Json& fingerprint);
void SayResumed(const JobDirectory& job, size_t num_layers, CommandContext& context);

// Returns hooks that pass on stop requests and report experts and weight bytes.
CalibrationHooks HooksOf(CommandContext& context, PhaseTimes& times, uint64_t* weights_read);

// Returns the digests of the model's files, which were computed in the background.
Json DigestsOf(std::future<Json>& model_json, const Opened& opened, CommandContext& context,
               PhaseTimes& times);

}  // namespace oscar
