// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes conversations that end in a tool call, as samples for one teacher-forced pass, like
// needles. The first errors of a cache with few bits are in arguments that must be copied exactly
// from far back. Trap: a small model cannot copy them even with an exact cache, and then its
// accuracy does not count (Recall). The KL of the arguments' tokens shows the effect of a cache on
// any model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "capture/text/data/chat_format.h"
#include "export/evaluate/needle.h"

namespace oscar {

struct ToolCallOptions {
  std::vector<int64_t> lengths;         // maximum tokens of conversation and call together
  int64_t samples_per_task = 1;         // per length
  std::vector<std::string> tasks = {};  // names of ToolCallTaskNames(); empty: all
  uint64_t seed = 0;
  const ChatFormat* chat = nullptr;  // null: "User:" and "Assistant:" in plain text
};

std::vector<std::string> ToolCallTaskNames();
void CheckToolCallTask(const std::string& name);  // UsageError naming the nearest

// Makes samples, ordered by length, task and number, with one answer for each argument of the call.
// Each depends only on the seed and on its own task, length and number. Throws what
// MakeNeedleSamples throws.
std::vector<NeedleSample> MakeToolCallSamples(const ToolCallOptions& options,
                                              const Tokenizer& tokenizer, int64_t max_positions);

}  // namespace oscar
