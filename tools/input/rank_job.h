// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A command as one rank of several: the options of that, what its launcher says, and ranks that the
// command starts itself. Trap: EnterJob comes before everything that looks for a GPU.
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

// First thing in main(): keeps worker threads' waits short (thread_waits.h), gives each rank of a
// machine a GPU of its own, and the console of a rank that is not rank 0, which speaks for all, if
// it has to.
Console EnterJob();

// How many ranks are asked for.
int RanksAskedFor(const RankOptions& options, const std::string& device);

// This process among the ranks of its job. Where ranks are asked for that nobody has started,
// starts them and ends this process with their exit code.
// `tensors`: whether they will send any to each other.
std::unique_ptr<RankGroup> JoinRanks(const RankOptions& options, const std::string& device,
                                     CommandContext& context, bool tensors = true);

// In a handler, of what ends this rank: ends all others with the same exit code. Comes back where
// the caller is to say why: on rank 0, and of Interrupted.
void EndJob(RankGroup& group);

// All ranks: InputError, on each, where one of them sees another model, other data, options,
// program or machine than rank 0.
void CheckSameOnAllRanks(const RankGroup& group, const Json& own);

// The smallest of the ranks' values.
uint64_t LeastOfRanks(const RankGroup& group, const std::string& name, uint64_t own);

// Ranks that are the first to have opened the files they have (OpenedFiles), rank 0 among them: one
// where all read the same, one of each machine or copy otherwise.
std::vector<int> FirstReaders(const RankGroup& group, const std::string& opened);

// All ranks, behind each layer: whether one of them wants to stop there.
bool AgreeToStop(const RankGroup& group, size_t layer_index, bool own);

}  // namespace oscar
