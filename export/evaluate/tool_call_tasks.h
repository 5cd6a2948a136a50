// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What each tool-call task puts into a conversation and asks for at its end, before any template or
// token: calls whose arguments stand, character by character, far back in what was said. To add a
// task, add a row.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "linalg/base/splitmix64.h"

namespace oscar {

// What the user says and the model answers. Calls are JSON in the text of a message and results
// come from the user: every chat template takes that, a role "tool" only some.
struct Exchange {
  std::string user, assistant;
};

struct ToolCallQuestion {
  std::vector<Exchange> hidden;        // one after another, far back
  std::string ask;                     // the user's last words
  std::string call;                    // the answer: {"name": ..., "arguments": {...}}
  std::vector<std::string> arguments;  // in the order in which they stand in `call`: what is scored
};

struct ToolCallTask {
  std::string_view name;
  double hidden_within;  // share of the conversation, from its beginning
  ToolCallQuestion (*make)(SplitMix64& random);
};
std::span<const ToolCallTask> ToolCallTasks();

// What the conversation begins with: which calls there are.
std::string ToolCallInstruction();

// Exchanges that a conversation is filled with, of the kinds that tasks ask about; of others.
std::vector<Exchange> MakeFiller(SplitMix64& random);

}  // namespace oscar
