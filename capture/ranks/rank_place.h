// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Which of how many processes of one job this one is, as its launcher says it in the environment:
// torchrun, srun, mpirun, or ourselves (launch.h). Trap: a batch script of Slurm has the variables
// of its allocation; only a step that srun started has ranks.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace oscar {

struct RankPlace {
  int rank = 0, size = 1;              // of the job
  int local_rank = 0, local_size = 1;  // on this machine
  std::string address = "127.0.0.1";   // where rank 0 can be reached
  int port = 29500;
  bool has_store = false;  // the launcher has opened that port: torchrun
  std::string launcher;    // what started it, for people
};

// What the environment has under a name.
using RankEnvironment = std::function<std::optional<std::string>(const std::string&)>;

// Nothing where this process is alone. UsageError for an environment that contradicts itself.
std::optional<RankPlace> PlaceInJob(const RankEnvironment& environment);

}  // namespace oscar
