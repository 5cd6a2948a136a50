// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The subject of oscar-calibrate, a model and data or a dump of one, and where its output goes.
// Trap: a model's own text (--self-generate) must be in the data before the Subject is made,
// because it decides lengths, memory and fingerprint.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calib/job/job_directory.h"
#include "calib/run/calibrate.h"
#include "calib/run/rank_plan.h"
#include "calib/run/shard_directory.h"
#include "tools/calibrate/calibrate_options.h"
#include "tools/cli/command.h"

namespace oscar {

// Throws UsageError for arguments that do not go together. Not for --merge.
void CheckArguments(const CalibrateOptions& options);

// Throws UsageError for options that only one rank supports, if `ranks` is more than one.
void CheckRanks(const CalibrateOptions& options, int ranks);

// Returns the shard of --shard; nothing if all documents are to be run.
std::optional<ShardPlace> ShardOf(const CalibrateOptions& options);
// Returns whether --merge names artifacts.
bool MergesArtifacts(const CalibrateOptions& options);
// Returns the shards of --merge, if any.
ShardSet ShardsToMerge(const CalibrateOptions& options);

struct Subject {
  CalibrationInput input;
  Json data;                          // for the manifest
  std::function<Json()> fingerprint;  // samples the files
  std::function<Json()> describe;     // reads every file once: meant to run beside the work
  std::function<Json()> identities;   // of the files, for a job here
  std::function<std::string()> opened_files = [] { return ""; };     // of a model (OpenedFiles)
  std::shared_ptr<ReadTurns> turns = std::make_shared<ReadTurns>();  // of `describe`
  std::shared_ptr<const ShardSet> shards = std::make_shared<const ShardSet>();
};
// `group`: this process among several (JobRanks), all of which make the same call. `shards`: those
// that have run the model, if any.
Subject OfModel(const CalibrateOptions& options, const std::shared_ptr<const ModelInput>& opened,
                RankGroup& group = OneRank(), const ShardSet& shards = {});
// Returns plans of 1, 2, 4 and so on ranks, up to the number asked for; none if that is one.
// `whole` and `one`: input and plan of one rank.
std::vector<RankPlan> PlanAllRanks(const CalibrateOptions& options,
                                   const std::shared_ptr<const ModelInput>& opened,
                                   const CalibrationInput& whole, const CalibrationPlan& one);
Subject OfDump(const CalibrateOptions& options, Log& log);

ModelInput OpenForCalibration(const CalibrateOptions& options, Log& log, bool planning);

// Text that the model writes; empty without --self-generate.
struct OwnText {
  std::string plan;             // lines that say what it will take
  std::optional<JobLock> lock;  // the right to the job that keeps it
};
OwnText PlanOwnText(const CalibrateOptions& options, ModelInput& opened);  // placeholders in opened
// Returns the same lines for doctor, or whether the model could write if it is not asked to.
std::string PrognosisOfOwnText(const CalibrateOptions& options, ModelInput& opened);
// Throws what the calibration would throw for text of the intended length: data, options, disk.
void CheckCalibrationOfOwnText(const CalibrateOptions& options,
                               const std::shared_ptr<ModelInput>& opened);
// Writes the text. Among ranks rank 0 writes it, and the others receive what it has kept.
OwnText WriteOwnText(const CalibrateOptions& options, RankGroup& group, CommandContext& context,
                     ModelInput& opened);

struct Places {
  std::filesystem::path output, job;
};
// Returns the places of output and job. Without a given name the output is named after the model or
// the dump, and a shard also after its number; a shard may exist. Throws if the output cannot be
// made there, or if something is there that no unfinished run has put there.
Places PlacesOf(const CalibrateOptions& options);
// Removes what a killed run has left of an output that it was making.
void RemoveStaging(const std::filesystem::path& output);

}  // namespace oscar
