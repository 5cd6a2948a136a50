// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The plan of a calibration (calib/run/plan.h) for people and for logs.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "calib/run/plan.h"
#include "calib/run/rank_plan.h"
#include "capture/files/strict_json.h"

namespace oscar {

// A line for each number; PlanText begins with the layers.
std::string PlanNumbers(const CalibrationInput& input, const CalibrationPlan& plan);
std::string PlanText(const CalibrationInput& input, const CalibrationPlan& plan);
Json PlanJson(const CalibrationInput& input, const CalibrationPlan& plan);

// ResourceError: the disk of `output`, or on a CPU the memory, has no room for `what`.
void CheckRoom(const std::filesystem::path& output, const CalibrationPlan& plan,
               const std::string& what);

// Of 1, 2, 4 and so on ranks, up to those asked for on so many machines; `largest_of` makes the
// input of the one with the most tokens.
std::vector<RankPlan> PlansOfRanks(const std::function<CalibrationInput(int ranks)>& largest_of,
                                   const CalibrationInput& whole, const CalibrationPlan& one,
                                   int ranks, int nodes);
Json RankPlanJson(const std::vector<RankPlan>& plans);
std::string RankPlanText(const std::vector<RankPlan>& plans);

}  // namespace oscar
