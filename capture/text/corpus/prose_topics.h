// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Word lists of the prose topics. Every topic has the symbols name, who, place, thing, things,
// state, did, done, task, remark and fact; prose.cc says how they are put together.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/text/corpus/grammar.h"

namespace oscar {

struct ProseTopic {
  std::string_view title;
  std::vector<Rule> rules;
};

std::span<const ProseTopic> ProseTopics();       // of the calibration corpus
std::span<const ProseTopic> EvaluationTopics();  // evaluation_topics.cc; no word list in common

// At least `target_bytes` about one topic: a title line, an empty line, paragraphs.
std::string MakeProseAbout(const ProseTopic& topic, SplitMix64& random, size_t target_bytes);

}  // namespace oscar
