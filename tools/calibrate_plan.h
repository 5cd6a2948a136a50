// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What --dry-run prints: layers, tokens, bytes, memory, disk and expected time of a calibration.
#pragma once

#include <string>

#include "calib/calibrate.h"
#include "capture/files/strict_json.h"

namespace oscar {

struct CalibrationPlan {
  uint64_t weights_read = 0;        // bytes
  uint64_t peak_device = 0;         // bytes; 0 on a CPU
  uint64_t peak_host = 0;           // bytes, the process and its libraries included
  uint64_t disk_while_running = 0;  // bytes of the job directory at its largest
  uint64_t disk_artifact = 0;       // bytes
  double seconds = 0;               // from the shapes and a short measurement of this machine
};

CalibrationPlan PlanCalibration(const CalibrationInput& input);

std::string PlanText(const CalibrationInput& input, const CalibrationPlan& plan);
Json PlanJson(const CalibrationInput& input, const CalibrationPlan& plan);

}  // namespace oscar
