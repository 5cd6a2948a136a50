// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Estimates what a calibration will read, hold and take, from shapes and a short measurement of
// this machine: the numbers of --dry-run. tests/tools/memory_test.cc holds the host peak to 15 % of
// what a run really takes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "calib/run/calibrate.h"

namespace oscar {

struct CalibrationPlan {
  uint64_t bytes_read = 0;          // of weights, or of a dump
  uint64_t peak_device = 0;         // bytes of tensors; 0 on a CPU
  uint64_t peak_host = 0;           // bytes, the process and its libraries included
  uint64_t disk_while_running = 0;  // bytes of the job directory and the artifact at their largest
  uint64_t disk_artifact = 0;       // bytes
  double seconds = 0;               // of the layers' arithmetic; reading may take longer
  // Parts of `seconds`: the model, its statistics, and for all layers fits and automatic choices.
  double model_seconds = 0, statistics_seconds = 0, fit_seconds = 0, auto_seconds = 0;
};

// Measures the device for a fraction of a second (device_rates.h).
CalibrationPlan PlanCalibration(const CalibrationInput& input);

// Returns why a run of `plan` on a CPU does not fit into this machine's memory and swap, or into
// its control group; "" if it fits.
std::string HostMemoryProblem(const CalibrationPlan& plan);

// Returns what one document costs the loop, attention and statistics included, in multiply-adds of
// the model.
double DocumentWork(const ModelSpec& spec, int64_t tokens);

// Returns the same as CalibrationPlan::peak_device, without the measurement.
uint64_t PlanDeviceMemory(const CalibrationInput& input);

// Returns the fastest of a few ways to run that fits into `limit` bytes of device memory: fewer
// layers fitted beside the loop, fewer tokens and queries at a time, one layer's weights instead of
// two. `make` builds the input for a way. Throws ResourceError with the needs of the smallest way.
// On a CPU the first way is taken.
CalibrationInput FitIntoMemory(
    uint64_t limit,
    const std::function<CalibrationInput(const LoopOptions&, const RunOptions&)>& make);

}  // namespace oscar
