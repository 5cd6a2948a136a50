// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes and scores needle-in-a-haystack and variable-tracking samples after RULER (arXiv
// 2404.06654). A sample is a sequence of token ids, prompt and answer, for one teacher-forced pass.
// README.md lists the differences from RULER and their reasons.
//
// Trap: because the answer is given, the accuracy says whether the model still finds each next
// token of the answer. It is not the accuracy of free generation, where one wrong token spoils the
// rest.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capture/text/tokenizer/tokenizer.h"
#include "export/measures/arm.h"

namespace oscar {

struct NeedleOptions {
  std::vector<int64_t> lengths;  // maximum tokens of prompt and answer together
  int64_t samples_per_task = 4;  // per length, and per depth
  // Depths of the needle in percent. Only tasks with a single needle for the answer use them.
  // Empty: needles are spread over all depths.
  std::vector<double> depths;
  std::vector<std::string> tasks;  // names of NeedleTaskNames(); empty: all
  uint64_t seed = 0;
  std::string prose;               // UTF-8 text for the prose haystack; empty: built-in prose
  std::vector<std::string> words;  // keys of kind "words"; empty: built-in adjective-noun pairs
};

struct NeedleSample {
  // One reference value within the answer.
  struct Answer {
    int64_t begin,
        end;       // tokens [begin, end) of `ids` that hold the value, widened to whole tokens
    double depth;  // percent of the context before its needle, in [0, 100]
    std::string value;
    // If not empty, the answer is one token. It counts as recalled if it is likelier than all of
    // these.
    std::vector<int32_t> rivals = {};
  };
  std::string task;
  int64_t length = 0;                      // requested length in tokens; ids.size() is at most that
  double depth = 0;                        // depth of the first answer
  std::optional<double> asked_depth = {};  // requested depth in percent
  std::vector<int32_t> ids;     // [num_tokens] the tokenizer's special tokens, prompt, answer
  std::vector<Answer> answers;  // in the order of the answer text
  std::string prompt, answer;   // as text, for --show-samples
};

// Returns the names of RULER's eight needle tasks and of variable tracking, in the order of the
// report.
std::vector<std::string> NeedleTaskNames();
void CheckNeedleTask(const std::string& name);  // UsageError naming the nearest

// Makes samples, ordered by length, task, depth and number. Each depends only on the seed and on
// its own task, length, number and depth, so leaving out a task does not change the others. Samples
// at different depths have the same needles and haystack.
//
// Throws UsageError for an unknown task (naming the nearest), no length, a length above
// `max_positions` or too short for the question, fewer than 1 sample, or a depth outside 0 to 100.
// Throws InputError if the tokenizer does not reproduce the answer, or if there are too few words.
std::vector<NeedleSample> MakeNeedleSamples(const NeedleOptions& options,
                                            const Tokenizer& tokenizer, int64_t max_positions);

struct NeedleScore {
  std::vector<uint8_t> recalled;  // [num_answers] 1: every token of the value was the top-1 choice
  double accuracy = 0;            // mean of `recalled` (string_match_all of RULER, in [0, 1])
  double answer_nll = 0;          // mean of -log p over all answer tokens, nats
};

// Scores a sample. `correct` and `log_probability` (natural log) have one element per token of the
// answers, in order. The logits of row p - 1 predict the token at position p.
NeedleScore ScoreNeedle(const NeedleSample& sample, std::span<const uint8_t> correct,
                        std::span<const double> log_probability);

// Returns the member "needle" of an arm in report.json: accuracy and answer_nll over all samples,
// by_task, by_length, by_depth (four quarters) and by_length_depth (around the requested depths, or
// quarters without them). Depths count answers, not samples. There must be at least one sample, and
// one score for each.
measures::NeedleRecall NeedleReport(std::span<const NeedleSample> samples,
                                    std::span<const NeedleScore> scores);

}  // namespace oscar
