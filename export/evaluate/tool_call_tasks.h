// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The texts of each tool-call task, independent of template and tokenizer: a conversation and the
// question at its end. Far back, the conversation contains the arguments of the call, character by
// character. To add a task, add a row.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "linalg/base/splitmix64.h"

namespace oscar {

// A user's message and the model's answer. Calls are JSON in the text of an answer, and the user's
// next message has the result. Every chat template supports this, whereas only some support the
// role "tool".
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
  double hidden_within;  // hidden exchanges are in this first share of the conversation
  ToolCallQuestion (*make)(SplitMix64& random);
};
std::span<const ToolCallTask> ToolCallTasks();

// Returns the instruction that begins the conversation. It lists the possible calls.
std::string ToolCallInstruction();

// Makes exchanges that fill up a conversation. They are like those of the tasks but have other
// names and values.
std::vector<Exchange> MakeFiller(SplitMix64& random);

}  // namespace oscar
