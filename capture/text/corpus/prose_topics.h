// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Word lists of the prose topics. Every topic has the symbols name, who, place, thing, things,
// state, did, done, task, remark and fact; prose.cc says how they are put together.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "capture/text/corpus/grammar.h"

namespace oscar {

struct ProseTopic {
  std::string_view title;
  std::vector<Rule> rules;
};

std::span<const ProseTopic> ProseTopics();

}  // namespace oscar
