// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a calibration: the statistics observer over a model that runs or a dump, one committed layer
// after another, resuming where a job stands.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calib/held_out.h"
#include "calib/job/job_directory.h"
#include "calib/job/layer_result.h"
#include "calib/observe/text_loss.h"
#include "calib/options.h"
#include "calib/phase_times.h"
#include "calib/run/rank_share.h"
#include "capture/model/run/attention_source.h"

namespace oscar {

// How a calibration runs on a GPU. Nothing here changes a result; on a CPU a layer is fitted and
// committed before the next one begins.
struct RunOptions {
  // Number of layers that are fitted while the loop is in the next ones. Each keeps its keys and
  // values, and takes the memory of a fit. Their eigenvectors are found on the host's cores, in
  // between the requests to the GPU. 0: the loop waits for the fit.
  int fits_beside = 6;
  // Longest time between two commits, except for layers that are still being fitted and for half of
  // this time before the end. If hidden states are small beside weights, commits come sooner: a
  // killed run loses little.
  double commit_seconds = 10;
};

// This process as one of several that run one calibration, each with its own documents. Ranks
// (RankGroup) take turns to fit a layer from what all of them observed; rank 0 has the job. A shard
// knows nothing of the others, fits nothing, and keeps what it observed (shard_directory.h).
struct JobRanks {
  RankGroup* group = &OneRank();      // of ranks that run; of a plan one
  bool apart = false;                 // this process is a shard
  std::vector<int64_t> lengths = {};  // of all sequences, in tokens; empty: those of the source
  std::vector<RankShare> shares = {{}};
  size_t number = 0;  // of this process in `shares`

  const RankShare& own() const { return shares.at(number); }
};

struct CalibrationInput {
  std::shared_ptr<AttentionSource> source = nullptr;  // computing on `device` in `dtype`
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  CalibrationOptions options = {};
  RunOptions run = {};
  JobRanks ranks = {};
  CountedQueries counted = {};        // of all sequences, whoever runs them
  std::vector<int32_t> domains = {};  // of each of lengths() (DataSet::domains)

  // The model that is calibrated; null if there is only a dump.
  ModelSource* model() const { return source->model(); }
  // The same if it runs here, in which case a resumed run needs its hidden states.
  ModelSource* running_model() const { return dynamic_cast<ModelSource*>(source.get()); }
  const std::vector<int64_t>& lengths() const;  // of all sequences, whoever runs them
  int64_t num_tokens() const;                   // of these
  HeldOutSplit Split() const;                   // of all sequences
  // Lengths of the sequences that a job here holds: a shard has only its own.
  const std::vector<int64_t>& job_lengths() const;
  int64_t job_tokens() const;
};

// Returns loop options with which a model computes everything up to the last queries of a cache.
LoopOptions CalibrationLoopOptions();

// One finished layer, for progress.
struct LayerProgress {
  size_t layer_index = 0;
  size_t num_layers = 0;
  int64_t tokens = 0;
  double seconds = 0;         // since the layer before
  uint64_t bytes_read = 0;    // of this layer on disk: weights, or queries, keys and values
  const LayerResult& result;  // of a shard nothing but its number
};

struct CalibrationHooks {
  std::function<void(const LayerProgress&)> on_layer;  // in order, on the thread that runs
  // How many tokens chose each expert of a layer that has experts, with a cache or without.
  std::function<void(const LayerSpec&, const std::vector<int64_t>&)> on_experts;
  std::function<bool()> stop_requested;  // asked at layer boundaries
  // Called after a model has run to its end, with the weight bytes that this process has read.
  std::function<void(uint64_t)> on_weights_read;
  PhaseTimes* times = nullptr;  // adds to it; null: measures nothing
};

// Throws UsageError for options that contradict each other, whatever the model.
void CheckOptions(const CalibrationOptions& options);

// Throws InputError, before any weight or value is read, if a head would see fewer tokens than
// options.min_tokens, or if a clip search has nothing held out to search on.
HeldOutSplit CheckCalibration(const CalibrationInput& input);

// Finishes every layer of `job`; for a shard, the file of every layer. Throws Interrupted, with the
// job on disk, if the hook asked to stop. A rank other than rank 0 has NoJob; its stop_requested
// asks all ranks to stop.
void RunCalibration(const CalibrationInput& input, JobDirectory& job,
                    const CalibrationHooks& hooks);

// Returns MeasureTextLoss after a run, over the sequences of all ranks. All ranks call this, and
// only rank 0 gets the result. A shard gets nothing.
std::optional<TextLoss> LossOfText(const CalibrationInput& input);

}  // namespace oscar
