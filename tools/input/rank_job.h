// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A command as one rank of several: its options, what the launcher says, and ranks that the command
// starts itself. Trap: EnterJob comes before everything that looks for a GPU.
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
  int64_t ranks = 0;          // to start here, on one device or CPU; 0: as --gpus has it
  int64_t nodes = 1;          // machines that a plan has them on
  double rank_timeout = 300;  // seconds
};
// `plans`: whether the command plans for ranks on several machines.
void AddRankOptions(OptionTable& table, RankOptions* options, bool plans = true);

// Must come first in main(). Keeps worker threads' waits short (thread_waits.h) and gives each rank
// of a machine its own GPU. Rank 0 speaks for all; another rank gets a console that writes its
// errors only.
Console EnterJob();

// Returns how many ranks are asked for.
int RanksAskedFor(const RankOptions& options, const std::string& device);

// This process among the ranks of its job. Where ranks are asked for that nobody has started,
// starts them and ends this process with their exit code.
// `tensors`: whether they will send any to each other.
std::unique_ptr<RankGroup> JoinRanks(const RankOptions& options, const std::string& device,
                                     CommandContext& context, bool tensors = true);

// Ends all other ranks with the exit code of the exception that a handler here has caught. Returns
// if the caller must report it: on rank 0, and for Interrupted.
void EndJob(RankGroup& group);

// All ranks call this. Throws InputError on each rank if one of them sees another model, data,
// options, program or machine than rank 0.
void CheckSameOnAllRanks(const RankGroup& group, const Json& own);

// Returns the smallest of the ranks' values.
uint64_t LeastOfRanks(const RankGroup& group, const std::string& name, uint64_t own);

// Returns the ranks that were the first to open their files (OpenedFiles), including rank 0: one if
// all read the same files, otherwise one of each machine or copy.
std::vector<int> FirstReaders(const RankGroup& group, const std::string& opened);

// All ranks call this after each layer. Returns whether one of them wants to stop there.
bool AgreeToStop(const RankGroup& group, size_t layer_index, bool own);

}  // namespace oscar
