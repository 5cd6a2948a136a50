// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/answer_errors.h"

#include <utility>

#include "export/evaluate/bootstrap.h"
#include "export/validate/piece_sums.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// Sums over the tool calls of one task and length, or over all tool calls.
struct CallSums {
  int64_t samples = 0;
  double exact = 0;                 // number of calls whose arguments are all right
  std::vector<RatioUnit> accuracy;  // [samples] right arguments of a call, and all of its arguments
  void Add(const NeedleScore& score) {
    const auto arguments = static_cast<double>(score.recalled.size());
    ++samples;
    exact += score.accuracy == 1 ? 1 : 0;
    accuracy.push_back({score.accuracy * arguments, arguments});
  }
  void WriteTo(auto& errors) const {
    RatioUnit all;
    for (const RatioUnit& unit : accuracy) {
      all.sum += unit.sum;
      all.weight += unit.weight;
    }
    errors.accuracy = all.sum / all.weight;
    errors.exact_calls = exact / static_cast<double>(samples);
  }
};

struct TaskSums {
  std::string task;
  int64_t length = 0;
  CallSums calls;
  RatioUnit kl;  // over tokens
};

TaskSums& SumsOf(std::vector<TaskSums>& tasks, const NeedleSample& sample) {
  for (TaskSums& sums : tasks)
    if (sums.task == sample.task && sums.length == sample.length) return sums;
  return tasks.emplace_back(TaskSums{sample.task, sample.length, {}, {}});
}

}  // namespace

std::vector<ScoredToken> AnswerTokens(std::span<const NeedleSample> samples, int64_t first_row) {
  std::vector<ScoredToken> tokens;
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto length = static_cast<int64_t>(samples[i].ids.size());
    for (const NeedleSample::Answer& answer : samples[i].answers) {
      for (int64_t position = answer.begin; position < answer.end; ++position) {
        tokens.push_back({.sequence = static_cast<int64_t>(i),
                          .position = position,
                          .length = length,
                          .hidden_row = first_row + position - 1,
                          .id = samples[i].ids[static_cast<size_t>(position)],
                          .rivals = answer.rivals});
      }
    }
    first_row += length;
  }
  return tokens;
}

std::vector<NeedleScore> AnswerScores(std::span<const NeedleSample> samples,
                                      std::span<const ScoredToken> tokens,
                                      const TokenErrors& errors) {
  std::vector<NeedleScore> scores;
  size_t next = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    std::vector<uint8_t> correct;
    std::vector<double> log_probability;
    for (; next < tokens.size() && tokens[next].sequence == static_cast<int64_t>(i); ++next) {
      correct.push_back(errors.is_top1[next]);
      log_probability.push_back(-static_cast<double>(errors.nll[next]));
    }
    scores.push_back(ScoreNeedle(samples[i], correct, log_probability));
  }
  return scores;
}

measures::ToolCallErrors ToolCallReport(std::span<const NeedleSample> samples,
                                        std::span<const ScoredToken> tokens,
                                        const TokenErrors& errors, const Recall& measurable,
                                        int64_t resamples, uint64_t seed) {
  OSCAR_CHECK(!tokens.empty());
  const std::vector<NeedleScore> scores = AnswerScores(samples, tokens, errors);
  std::vector<TaskSums> tasks;
  for (size_t i = 0; i < samples.size(); ++i) SumsOf(tasks, samples[i]).calls.Add(scores[i]);
  PieceSums kl;
  for (size_t i = 0; i < tokens.size(); ++i) {
    // The bootstrap resamples whole calls, so all tokens of a call go into one piece.
    kl.Add(tokens[i].sequence, 0, tokens[i].length, errors.kl[i]);
    RatioUnit& of_task = SumsOf(tasks, samples[static_cast<size_t>(tokens[i].sequence)]).kl;
    of_task.sum += errors.kl[i];
    of_task.weight += 1;
  }
  measures::ToolCallErrors report;
  report.samples = std::ssize(samples);
  report.tokens = std::ssize(tokens);
  report.token_kl = KlOf(kl, errors.kl, resamples, seed);
  for (const TaskSums& sums : tasks) {
    auto& row =
        report.by_task.emplace_back(measures::ToolCallTask{sums.task,
                                                           sums.length,
                                                           sums.calls.samples,
                                                           static_cast<int64_t>(sums.kl.weight),
                                                           sums.kl.sum / sums.kl.weight,
                                                           {},
                                                           {}});
    sums.calls.WriteTo(row);
  }
  if (!measurable.any()) return report;
  CallSums counted;
  for (const size_t i : measurable.counted()) counted.Add(scores[i]);
  counted.WriteTo(report);
  report.accuracy_interval =
      BootstrapRatio(counted.accuracy, {.resamples = resamples, .seed = seed});
  return report;
}

}  // namespace oscar
