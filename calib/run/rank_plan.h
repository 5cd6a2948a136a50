// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Estimates the reads, transfers, memory and time of a calibration by several ranks, from shapes
// and the plan for one rank. Ranks divide the arithmetic by documents and the fits by layers.
// Transfer rates are assumed, not measured.
#pragma once

#include "calib/run/plan.h"

namespace oscar {

inline constexpr double kBytesPerSecondInside = 50e9;     // per rank, inside a machine
inline constexpr double kBytesPerSecondBetween = 12.5e9;  // per machine, on the network

struct RankPlan {
  int ranks = 1, nodes = 1;
  int64_t most_tokens = 0;     // largest share of a rank
  uint64_t read_per_node = 0;  // weight bytes: the experts of its ranks, and all other weights
  uint64_t exchanged = 0;      // bytes between all ranks
  uint64_t network = 0;        // part of `exchanged` that crosses machines
  uint64_t peak_device = 0, peak_host = 0;  // peak bytes of a rank
  double seconds = 0;
  double efficiency = 0;  // time with one rank / (ranks * time with all of them)
};

// `largest`: input of the rank with the most tokens, with the lengths of all sequences. `whole` and
// `one`: input and plan for one rank that runs everything.
RankPlan PlanRanks(const CalibrationInput& largest, const CalibrationInput& whole,
                   const CalibrationPlan& one, int nodes);

}  // namespace oscar
