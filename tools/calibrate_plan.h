// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The plan of a calibration (calib/run/plan.h) for people and for logs.
#pragma once

#include <string>

#include "calib/run/plan.h"
#include "capture/files/strict_json.h"

namespace oscar {

// A line for each number; PlanText begins with the layers.
std::string PlanNumbers(const CalibrationInput& input, const CalibrationPlan& plan);
std::string PlanText(const CalibrationInput& input, const CalibrationPlan& plan);
Json PlanJson(const CalibrationInput& input, const CalibrationPlan& plan);

}  // namespace oscar
