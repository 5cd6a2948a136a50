// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Estimates the bytes read, memory and time of a calibration from shapes and a short measurement of
// this machine, for --dry-run. tests/tools/memory_test.cc requires the estimated host peak to be
// within 15 % of a real run's peak.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "calib/run/calibrate.h"

namespace oscar {

struct CalibrationPlan {
  uint64_t bytes_read = 0;          // bytes of weights or of a dump
  uint64_t peak_device = 0;         // bytes of tensors; 0 on a CPU
  uint64_t peak_host = 0;           // bytes, including the process and its libraries
  uint64_t disk_while_running = 0;  // bytes of the job directory and the artifact at their peak
  uint64_t disk_artifact = 0;       // bytes
  double seconds = 0;               // for the layers' arithmetic; reading may take longer
  // Parts of `seconds`: the model, its statistics, and all layers' fits and automatic choices.
  double model_seconds = 0, statistics_seconds = 0, fit_seconds = 0, auto_seconds = 0;
};

// Measures the device for a fraction of a second (device_rates.h).
CalibrationPlan PlanCalibration(const CalibrationInput& input);

// Returns why a run of `plan` on a CPU does not fit into this machine's memory and swap, or into
// the limit of its control group; "" if it fits.
std::string HostMemoryProblem(const CalibrationPlan& plan);

// Returns the cost of running one document through the loop, with attention and statistics, in
// multiply-adds of the model.
double DocumentWork(const ModelSpec& spec, int64_t tokens);

// Returns CalibrationPlan::peak_device without the measurement.
uint64_t PlanDeviceMemory(const CalibrationInput& input);

// Returns the fastest of a few configurations that fits into `limit` bytes of device memory. Slower
// ones fit fewer layers at once, process fewer tokens and queries at a time, or hold the weights of
// one layer instead of two. `make` builds the input for a configuration. Throws ResourceError with
// the needs of the smallest one if none fits. On a CPU, returns the first one.
CalibrationInput FitIntoMemory(
    uint64_t limit,
    const std::function<CalibrationInput(const LoopOptions&, const RunOptions&)>& make);

}  // namespace oscar
