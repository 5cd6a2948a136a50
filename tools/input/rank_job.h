// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a command as one of several ranks: the options, the launcher's environment variables, and
// ranks that the command starts itself. Trap: call EnterJob before anything that looks for a GPU.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/ranks/rank_group.h"
#include "tools/cli/command.h"
#include "tools/cli/option_table.h"

namespace oscar {

struct RankOptions {
  std::string gpus;           // "all" or a number; empty: one
  int64_t ranks = 0;          // ranks to start on one device or CPU; 0: one per GPU of `gpus`
  int64_t nodes = 1;          // machines, for plans only
  double rank_timeout = 300;  // seconds
};
// `plans`: whether the command can plan for ranks on several machines.
void AddRankOptions(OptionTable& table, RankOptions* options, bool plans = true);

// Must be called first in main(). Makes the process keep freed memory, and gives each rank on a
// machine its own GPU. Returns the console: that of rank 0 is the usual one, those of other ranks
// only show errors.
Console EnterJob();

// Returns the requested number of ranks.
int RanksAskedFor(const RankOptions& options, const std::string& device);

// Connects this process to the ranks of its job. If ranks are requested but were not started,
// starts them and ends this process with their exit code. `tensors`: whether the ranks will
// exchange tensors.
std::unique_ptr<RankGroup> JoinRanks(const RankOptions& options, const std::string& device,
                                     CommandContext& context, bool tensors = true);

// Call this in a catch block. Ends all other ranks with the exit code of the current exception.
// Returns only if the caller must report the exception: on rank 0, and for Interrupted.
void EndJob(RankGroup& group);

// Throws InputError if the model, data, options, program or machine (`own`) of a rank differs from
// those of rank 0. All ranks must call this.
void CheckSameOnAllRanks(const RankGroup& group, const Json& own);

// Returns the smallest of the ranks' values.
uint64_t LeastOfRanks(const RankGroup& group, const std::string& name, uint64_t own);

// Returns, for each copy of the files that ranks have opened, the lowest rank that uses it. Rank 0
// is always one of these, and the only one if all ranks use the same files. `opened`: OpenedFiles
// of this rank.
std::vector<int> FirstReaders(const RankGroup& group, const std::string& opened);

// Returns whether a rank wants to stop after this layer. All ranks must call this after each layer.
bool AgreeToStop(const RankGroup& group, size_t layer_index, bool own);

}  // namespace oscar
