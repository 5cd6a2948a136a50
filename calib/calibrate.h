// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a calibration: the layer loop with the statistics observer, one committed layer after
// another, resuming where a job stands.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "calib/held_out.h"
#include "calib/job_directory.h"
#include "calib/layer_result.h"
#include "calib/options.h"
#include "capture/checkpoint/checkpoint.h"
#include "capture/model/layer_loop.h"

namespace oscar {

struct CalibrationInput {
  const Checkpoint& checkpoint;
  const ModelSpec& spec;
  std::vector<std::vector<int32_t>> sequences;  // token ids of each document
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  CalibrationOptions options;

  std::vector<int64_t> SequenceLengths() const;  // tokens of each
};

// One finished layer, for progress.
struct LayerProgress {
  size_t layer_index = 0;
  size_t num_layers = 0;
  int64_t tokens = 0;
  double seconds = 0;         // of this layer, its commit included
  uint64_t weight_bytes = 0;  // of this layer on disk
  const LayerResult& result;
};

struct CalibrationHooks {
  std::function<void(const LayerProgress&)> on_layer;  // after the layer is committed
  std::function<bool()> stop_requested;                // asked at layer boundaries
};

// Throws, before any weight is read: InputError where a head would see fewer tokens than
// options.min_tokens, or a clip search has nothing held out to search on.
HeldOutSplit CheckCalibration(const CalibrationInput& input);

// Finishes every layer of `job`. Throws Interrupted, with the job on disk, if the hook asked to
// stop.
void RunCalibration(const CalibrationInput& input, JobDirectory& job,
                    const CalibrationHooks& hooks);

}  // namespace oscar
