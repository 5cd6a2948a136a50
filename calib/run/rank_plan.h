// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Estimates what a calibration by several ranks will read, send, hold and take, from shapes and the
// plan of one rank. Arithmetic is divided as the documents allow, and fits by layers; transfers
// take rates that are assumed, not measured.
#pragma once

#include "calib/run/plan.h"

namespace oscar {

inline constexpr double kBytesPerSecondInside = 50e9;     // of one rank, on a machine
inline constexpr double kBytesPerSecondBetween = 12.5e9;  // of one machine, on the network

struct RankPlan {
  int ranks = 1, nodes = 1;
  int64_t most_tokens = 0;     // of one rank
  uint64_t read_per_node = 0;  // bytes of weights: the experts of its ranks, and all other weights
  uint64_t exchanged = 0;      // bytes between ranks, all together
  uint64_t network = 0;        // of these, between machines
  uint64_t peak_device = 0, peak_host = 0;  // bytes of a rank, at most
  double seconds = 0;
  double efficiency = 0;  // the time of one rank, over `ranks` times the time with all of them
};

// `largest`: the input of the rank with the most tokens, with the lengths of all sequences. `whole`
// and `one`: input and plan of one rank that runs everything.
RankPlan PlanRanks(const CalibrationInput& largest, const CalibrationInput& whole,
                   const CalibrationPlan& one, int nodes);

}  // namespace oscar
