// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The texts of each tool-call task before any template or token: the conversation, and the question
// at its end. The arguments of the call occur, character by character, far back in the
// conversation. To add a task, add a row.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "linalg/base/splitmix64.h"

namespace oscar {

// A user's message and the model's answer. Calls are JSON in the text of a message, and the user
// gives the results. Every chat template supports that, but only some support a role "tool".
struct Exchange {
  std::string user, assistant;
};

struct ToolCallQuestion {
  std::vector<Exchange> hidden;        // consecutive exchanges, far back in the conversation
  std::string ask;                     // the user's last message
  std::string call;                    // the answer: {"name": ..., "arguments": {...}}
  std::vector<std::string> arguments;  // the scored arguments, in the order of `call`
};

struct ToolCallTask {
  std::string_view name;
  double hidden_within;  // hidden exchanges are within this first share of the conversation
  ToolCallQuestion (*make)(SplitMix64& random);
};
std::span<const ToolCallTask> ToolCallTasks();

// Returns the instruction that begins the conversation. It lists the calls.
std::string ToolCallInstruction();

// Exchanges that fill a conversation, like those of the tasks but with other names and values.
std::vector<Exchange> MakeFiller(SplitMix64& random);

}  // namespace oscar
