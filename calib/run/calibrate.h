// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a calibration: observes statistics of a running model or a dump, commits one layer after
// another, and resumes an unfinished job.
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

// How a calibration runs on a GPU. No option here changes a result. On a CPU, a layer is fitted and
// committed before the next one begins.
struct RunOptions {
  // Number of layers that are fitted while the loop works on later layers. 0: the loop waits for
  // every fit. A layer that is being fitted keeps its keys and values, and needs the memory of a
  // fit. Its eigenvectors are computed on the host's cores, between requests to the GPU.
  int fits_beside = 6;
  // Minimum number of seconds between two commits. If hidden states are small compared to weights,
  // commits come sooner, so that a killed run loses little. No commit begins if the run is expected
  // to end within half of this time. A commit waits for the fits of its layers.
  double commit_seconds = 10;
};

// Describes this process as one of several that run one calibration, each with its own documents.
// Ranks (RankGroup) take turns to fit a layer from what all of them observed, and rank 0 has the
// job. A shard does not know the other shards. It fits nothing and stores what it observed
// (shard_directory.h).
struct JobRanks {
  RankGroup* group = &OneRank();      // the ranks that run; one rank for a plan
  bool apart = false;                 // whether this process is a shard
  std::vector<int64_t> lengths = {};  // tokens of all sequences; empty: as in the source
  std::vector<RankShare> shares = {{}};
  size_t number = 0;  // index of this process in `shares`

  const RankShare& own() const { return shares.at(number); }
};

struct CalibrationInput {
  std::shared_ptr<AttentionSource> source = nullptr;  // computing on `device` in `dtype`
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  CalibrationOptions options = {};
  RunOptions run = {};
  JobRanks ranks = {};
  CountedQueries counted = {};        // for all sequences, including other processes'
  std::vector<int32_t> domains = {};  // for each of lengths() (DataSet::domains)

  // The calibrated model; null if there is only a dump.
  ModelSource* model() const { return source->model(); }
  // The same model, but null if it does not run in this process. A resumed run needs the model's
  // hidden states.
  ModelSource* running_model() const { return dynamic_cast<ModelSource*>(source.get()); }
  const std::vector<int64_t>& lengths() const;  // all sequences, including other processes'
  int64_t num_tokens() const;                   // total of lengths()
  HeldOutSplit Split() const;                   // for all sequences
  // Lengths of the sequences in this job: a shard has only its own.
  const std::vector<int64_t>& job_lengths() const;
  int64_t job_tokens() const;
};

// Returns loop options with which a model stops after the last queries that read a cache.
LoopOptions CalibrationLoopOptions();

// One finished layer, for progress.
struct LayerProgress {
  size_t layer_index = 0;
  size_t num_layers = 0;
  int64_t tokens = 0;
  double seconds = 0;         // since the previous layer
  uint64_t bytes_read = 0;    // read from disk: weights, or queries, keys and values
  const LayerResult& result;  // for a shard, only the layer's number is set
};

struct CalibrationHooks {
  std::function<void(const LayerProgress&)> on_layer;  // in order, on RunCalibration's thread
  // Reports how many tokens chose each expert of a layer, whether or not the layer has a cache.
  std::function<void(const LayerSpec&, const std::vector<int64_t>&)> on_experts;
  std::function<bool()> stop_requested;  // called at layer boundaries
  // Called after the model's last layer with the number of weight bytes that this process read.
  std::function<void(uint64_t)> on_weights_read;
  PhaseTimes* times = nullptr;  // phases are added here; null: not measured
};

// Throws UsageError for options that contradict each other with any model.
void CheckOptions(const CalibrationOptions& options);

// Checks the input before any weight or value is read, and returns its split. Throws InputError if
// heads would see fewer tokens than options.min_tokens, or if a clip search has no held-out rows.
HeldOutSplit CheckCalibration(const CalibrationInput& input);

// Finishes every layer of `job`; in a shard, a layer is finished when its observations are in a
// file. Throws Interrupted if the hook asked to stop; finished layers stay on disk. Ranks other
// than 0 pass a NoJob; if their stop_requested returns true, all ranks stop.
void RunCalibration(const CalibrationInput& input, JobDirectory& job,
                    const CalibrationHooks& hooks);

// Returns the result of MeasureTextLoss over the sequences of all ranks, after a run. All ranks
// must call this, and only rank 0 gets the result. A shard gets nothing.
std::optional<TextLoss> LossOfText(const CalibrationInput& input);

}  // namespace oscar
