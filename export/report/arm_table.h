// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables of the numbers by which arms (measured configurations) are compared: one of all arms of a
// validation, and the cells for tables of several models.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "export/measures/table.h"
#include "export/report/arm_look.h"

namespace oscar {

// Returns a dash if the arm has no such number.
std::string MeasureCell(const Measure& measure, const Record& arm);

// Formats `holder[member]`, which is a KL or a difference of two: the mean and, in small print, its
// interval. Returns a dash if it is missing.
std::string EstimateCell(const Record& holder, std::string_view member);

bool AnyArmHas(const std::vector<ArmLook>& arms, std::string_view member);

// Lists the arms in order of attention-KL. `on_front` [num_arms]: whether an arm is marked as being
// on the Pareto front.
std::string ArmTable(const std::vector<ArmLook>& arms, const std::vector<bool>& on_front);

inline constexpr const char* kNoNumber = "–";

}  // namespace oscar
