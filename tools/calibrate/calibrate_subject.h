// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The subject of oscar-calibrate (a model and data, or a dump), and the paths of its output. Trap:
// text that the model writes (--self-generate) must be in the data before a Subject is made,
// because lengths, memory and fingerprint depend on it.
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

// Throws UsageError for arguments that conflict. Not used with --merge.
void CheckArguments(const CalibrateOptions& options);

// With more than one rank, throws UsageError for options that only a single process supports.
void CheckRanks(const CalibrateOptions& options, int ranks);

// Returns the shard of --shard; nothing if all documents are to be run.
std::optional<ShardPlace> ShardOf(const CalibrateOptions& options);
// Returns whether --merge names artifacts.
bool MergesArtifacts(const CalibrateOptions& options);
// Returns the shards of --merge, if any.
ShardSet ShardsToMerge(const CalibrateOptions& options);

struct Subject {
  CalibrationInput input;
  Json data;                          // stored in the manifest
  std::function<Json()> fingerprint;  // samples the files
  std::function<Json()> describe;     // reads every file once; runs in the background
  std::function<Json()> identities;   // identities of the files, for a job on this machine
  std::function<std::string()> opened_files = [] { return ""; };     // for a model (OpenedFiles)
  std::shared_ptr<ReadTurns> turns = std::make_shared<ReadTurns>();  // used by `describe`
  std::shared_ptr<const ShardSet> shards = std::make_shared<const ShardSet>();
};
// Makes the subject of a model. `group`: the ranks of the job (JobRanks), all of which must call
// this. `shards`: the finished shards to merge, if any.
Subject OfModel(const CalibrateOptions& options, const std::shared_ptr<const ModelInput>& opened,
                RankGroup& group = OneRank(), const ShardSet& shards = {});
// Returns plans for 1, 2, 4 and so on ranks up to the requested number; none if one rank was
// requested. `whole` and `one`: the input and the plan of a single rank.
std::vector<RankPlan> PlanAllRanks(const CalibrateOptions& options,
                                   const std::shared_ptr<const ModelInput>& opened,
                                   const CalibrationInput& whole, const CalibrationPlan& one);
Subject OfDump(const CalibrateOptions& options, Log& log);

ModelInput OpenForCalibration(const CalibrateOptions& options, Log& log, bool planning);

// Calibration text that the model writes. Empty without --self-generate.
struct OwnText {
  std::string plan;             // lines that describe the cost
  std::optional<JobLock> lock;  // lock of the job that stores the text
};
OwnText PlanOwnText(const CalibrateOptions& options, ModelInput& opened);  // with placeholders
// Returns the same lines for doctor. Without --self-generate, returns whether the model could write
// text.
std::string PrognosisOfOwnText(const CalibrateOptions& options, ModelInput& opened);
// Throws the errors about data, options and disk that a calibration on this amount of text would
// throw.
void CheckCalibrationOfOwnText(const CalibrateOptions& options,
                               const std::shared_ptr<ModelInput>& opened);
// Writes the text. With several ranks, rank 0 writes it and sends it to the others.
OwnText WriteOwnText(const CalibrateOptions& options, RankGroup& group, CommandContext& context,
                     ModelInput& opened);

struct Places {
  std::filesystem::path output, job;
};
// Returns the paths of the output and the job. By default the output is named after the model or
// the dump; the name of a shard also has its number. Throws if a new output cannot be made there. A
// path that has a job or a finished shard is accepted.
Places PlacesOf(const CalibrateOptions& options);
// Removes a partly made output that a killed run left.
void RemoveStaging(const std::filesystem::path& output);

}  // namespace oscar
