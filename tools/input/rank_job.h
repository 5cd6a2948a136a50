// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a command as one rank of several: its options, the launcher's variables, and ranks that the
// command starts itself. Trap: call EnterJob before anything that looks for a GPU.
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

// Must be called first in main(). Lets the process keep freed memory and gives each rank of a
// machine its own GPU. Only rank 0 writes output; the console of another rank writes
// errors only.
Console EnterJob();

// Returns the requested number of ranks.
int RanksAskedFor(const RankOptions& options, const std::string& device);

// Connects this process to the ranks of its job. If ranks are requested but not running, starts
// them and ends this process with their exit code. `tensors`: whether they will exchange tensors.
std::unique_ptr<RankGroup> JoinRanks(const RankOptions& options, const std::string& device,
                                     CommandContext& context, bool tensors = true);

// Ends all other ranks with the exit code of the exception being handled. Returns if the caller
// must report the exception: on rank 0, and for Interrupted.
void EndJob(RankGroup& group);

// All ranks must call this. Throws InputError on each rank if one of them has another model, data,
// options, program or machine than rank 0.
void CheckSameOnAllRanks(const RankGroup& group, const Json& own);

// Returns the smallest of the ranks' values.
uint64_t LeastOfRanks(const RankGroup& group, const std::string& name, uint64_t own);

// Returns the ranks that opened their files first (OpenedFiles), including rank 0. This is one rank
// if all read the same files, otherwise one per machine or copy.
std::vector<int> FirstReaders(const RankGroup& group, const std::string& opened);

// All ranks must call this after each layer. Returns whether one of them wants to stop there.
bool AgreeToStop(const RankGroup& group, size_t layer_index, bool own);

}  // namespace oscar
