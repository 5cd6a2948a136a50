// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The rank of this process in its job, read from the environment variables that the launcher sets:
// torchrun, srun, mpirun, or our own (launch.h). Trap: a batch script of Slurm sees the variables
// of its allocation, but only processes started by srun are ranks.
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

// Returns nothing if this process is alone. Throws UsageError if a variable is missing or is not a
// number, or if variables contradict each other.
std::optional<RankPlace> PlaceInJob(const RankEnvironment& environment);

}  // namespace oscar
