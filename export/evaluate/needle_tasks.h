// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The needle tasks, independent of haystack and tokenizer: a table of RULER's eight variants and of
// variable tracking, and the questions made from its rows. To add a task, add a row. Trap:
// sentences and templates are RULER's, and results are compared between programs. With a changed
// word it would be another benchmark.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "linalg/base/splitmix64.h"

namespace oscar {

enum class HaystackKind { kNoise, kProse, kNeedles };
enum class NeedleText { kWords, kNumbers, kUuids };

struct NeedleTask {
  std::string_view name;
  HaystackKind haystack;
  NeedleText key, value;
  int num_keys, num_values, num_queries;  // values per key; keys in the question
  int num_chains, num_hops;               // for variable tracking; 0 for needles
};
std::span<const NeedleTask> NeedleTasks();

// A hidden sentence, and the index in NeedleQuestion::values of the answer that it holds; -1: no
// answer.
struct HiddenSentence {
  std::string text;
  int answer;
};

struct NeedleQuestion {
  std::vector<HiddenSentence> hidden;  // in the order of the text
  std::vector<std::string> values;     // the references, in the order of the answer
  std::string before, after;           // the prompt is before + context + after
  std::string answer;                  // begins with a space, ends with a full stop
  std::vector<size_t> value_offsets;   // [num_values] byte offsets into `answer`
  NeedleText key = NeedleText::kWords, value = NeedleText::kNumbers;  // for distractors
};

// `words`: see NeedleOptions::words.
NeedleQuestion MakeNeedleQuestion(const NeedleTask& task, const std::vector<std::string>& words,
                                  SplitMix64& random);

// Makes a needle sentence with a new key and value, for the haystack that consists of needles. Its
// key and value are never those of `question`.
std::string MakeDistractor(const NeedleQuestion& question, const std::vector<std::string>& words,
                           SplitMix64& random);

}  // namespace oscar
