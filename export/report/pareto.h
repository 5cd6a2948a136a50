// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Charts of the error of methods against their cost, for the page of one validation and the page of
// several models.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "export/report/arm_look.h"

namespace oscar {

// Makes two charts against stored bits: attention-KL and next-token KL.
// `id` makes them unique on the page.
std::string ParetoCharts(const std::vector<ArmLook>& arms, std::string_view id);

// Returns [num_arms]: whether an arm is on the Pareto front, so that no other arm has both fewer
// stored bits and less attention-KL. Null controls and arms without error are not on it.
std::vector<bool> IsOnFront(const std::vector<ArmLook>& arms);

}  // namespace oscar
