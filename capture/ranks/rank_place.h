// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The place of this process in its job, from the environment that the launcher sets: torchrun,
// srun, mpirun, or our own (launch.h). Trap: a batch script of Slurm has the variables of its
// allocation, but only a step started by srun has ranks.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace oscar {

struct RankPlace {
  int rank = 0, size = 1;              // rank and number of ranks in the job
  int local_rank = 0, local_size = 1;  // the same on this machine
  std::string address = "127.0.0.1";   // address of rank 0
  int port = 29500;
  bool has_store = false;  // true if the launcher (torchrun) has opened that port
  std::string launcher;    // name of its program, for messages
};

// Looks up an environment variable.
using RankEnvironment = std::function<std::optional<std::string>(const std::string&)>;

// Returns nothing if this process is alone. Throws UsageError if the environment contradicts
// itself.
std::optional<RankPlace> PlaceInJob(const RankEnvironment& environment);

}  // namespace oscar
