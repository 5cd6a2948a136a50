// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows the plan of a calibration (calib/run/plan.h) to people and in logs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "calib/run/plan.h"
#include "calib/run/rank_plan.h"
#include "capture/files/strict_json.h"

namespace oscar {

// PlanNumbers describes the memory, disk and time, one per line. PlanText describes the layers
// first.
std::string PlanNumbers(const CalibrationInput& input, const CalibrationPlan& plan);
std::string PlanText(const CalibrationInput& input, const CalibrationPlan& plan);
Json PlanJson(const CalibrationInput& input, const CalibrationPlan& plan);

// Throws ResourceError if the disk of `output` or the CPU's memory has no room for `what`.
void CheckRoom(const std::filesystem::path& output, const CalibrationPlan& plan,
               const std::string& what);

Json RankPlanJson(const std::vector<RankPlan>& plans);
std::string RankPlanText(const std::vector<RankPlan>& plans);

}  // namespace oscar
