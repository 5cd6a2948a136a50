// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/needle.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "capture/files/nearest.h"
#include "capture/files/quote.h"
#include "capture/text/data/builtin_corpus.h"
#include "capture/text/data/packing.h"
#include "export/evaluate/haystack.h"
#include "export/evaluate/needle_tasks.h"
#include "export/evaluate/prompt_fit.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr double kTokensPerUnit = 8;  // a first guess, between a word and a line

const NeedleTask& FindTask(const std::string& name) {
  for (const NeedleTask& task : NeedleTasks()) {
    if (task.name == name) return task;
  }
  const std::vector<std::string> names = NeedleTaskNames();
  throw UsageError(fmt::format("unknown needle task {}; the nearest of {} tasks: {}", Quoted(name),
                               names.size(), Nearest(name, names)));
}

class SampleMaker {
 public:
  SampleMaker(const NeedleOptions& options, const Tokenizer& tokenizer, std::string_view prose)
      : options_(options), encoder_(tokenizer, LeadingSpecialTokens(tokenizer)), prose_(prose) {}

  NeedleSample Make(const NeedleTask& task, int64_t length, int64_t number,
                    std::optional<double> depth) {
    SplitMix64 random(Seed(task, length, number));
    const NeedleQuestion question = MakeNeedleQuestion(task, options_.words, random);
    Haystack haystack(task, question, prose_, options_.words, random,
                      {.stratum = number, .num_strata = options_.samples_per_task, .depth = depth});
    Context context;
    NeedleSample sample;
    sample.task = task.name;
    sample.length = length;
    sample.asked_depth = depth;
    const auto build = [&](int64_t num_units) {
      context = haystack.Build(num_units);
      sample.prompt = question.before + context.text + question.after;
      sample.ids = encoder_.Encode(sample.prompt + question.answer);
      return static_cast<int64_t>(sample.ids.size());
    };
    const int64_t smallest = build(haystack.min_units());
    if (smallest > length) {
      throw UsageError(
          fmt::format("needle length {}: task {} takes at least {} tokens with this tokenizer; "
                      "give a larger length, or leave out the task",
                      length, task.name, smallest));
    }
    build(LargestSize(haystack.min_units(), smallest, length, kTokensPerUnit, build));
    sample.answer = question.answer;
    FindAnswers(question, context, sample);
    return sample;
  }

 private:
  // Depends only on the task and the sample, so a task's text does not change if another task is
  // left out.
  uint64_t Seed(const NeedleTask& task, int64_t length, int64_t number) const {
    uint64_t seed = SplitMix64(options_.seed).Next();
    const auto add = [&](uint64_t value) { seed = SplitMix64(seed ^ value).Next(); };
    for (const char c : task.name) add(static_cast<uint8_t>(c));
    add(static_cast<uint64_t>(length));
    add(static_cast<uint64_t>(number));
    return seed;
  }

  void FindAnswers(const NeedleQuestion& question, const Context& context,
                   NeedleSample& sample) const {
    for (size_t i = 0; i < question.values.size(); ++i) {
      const size_t tail = question.answer.size() - question.value_offsets[i];
      const std::string& value = question.values[i];
      sample.answers.push_back(encoder_.FindValue(sample.ids, tail, tail - value.size(), value));
      for (size_t j = 0; j < question.hidden.size(); ++j) {
        if (question.hidden[j].answer == static_cast<int>(i))
          sample.answers.back().depth = context.depths[j];
      }
    }
    sample.depth = sample.answers.front().depth;
  }

  const NeedleOptions& options_;
  PromptEncoder encoder_;
  ProseHaystack prose_;
};

}  // namespace

void CheckNeedleTask(const std::string& name) { FindTask(name); }

std::vector<std::string> NeedleTaskNames() {
  std::vector<std::string> names;
  for (const NeedleTask& task : NeedleTasks()) names.emplace_back(task.name);
  return names;
}

std::vector<NeedleSample> MakeNeedleSamples(const NeedleOptions& options,
                                            const Tokenizer& tokenizer, int64_t max_positions) {
  constexpr size_t kFewestWords = 16;
  if (options.lengths.empty()) throw UsageError("needle tasks: no context length was given");
  if (options.samples_per_task < 1) {
    throw UsageError(fmt::format("needle tasks: {} samples per task, expected at least 1",
                                 options.samples_per_task));
  }
  for (const int64_t length : options.lengths) {
    if (length > max_positions) {
      throw UsageError(
          fmt::format("needle length {}: the model supports {} positions", length, max_positions));
    }
  }
  for (const double depth : options.depths) {
    if (!(depth >= 0 && depth <= 100))
      throw UsageError(fmt::format("needle depth {}: expected a percentage, 0 to 100", depth));
  }
  if (!options.words.empty() && options.words.size() < kFewestWords) {
    throw InputError(fmt::format("needle tasks: the list has {} words, expected at least {}",
                                 options.words.size(), kFewestWords));
  }
  std::vector<const NeedleTask*> tasks;
  for (const std::string& name : options.tasks) tasks.push_back(&FindTask(name));
  if (tasks.empty()) {
    for (const NeedleTask& task : NeedleTasks()) tasks.push_back(&task);
  }
  SampleMaker maker(options, tokenizer,
                    options.prose.empty() ? BuiltinHaystack() : std::string_view(options.prose));
  std::vector<NeedleSample> samples;
  for (const int64_t length : options.lengths) {
    for (const NeedleTask* task : tasks) {
      std::vector<std::optional<double>> depths(1);
      if (HasOnePlace(*task) && !options.depths.empty())
        depths.assign(options.depths.begin(), options.depths.end());
      for (const std::optional<double>& depth : depths) {
        for (int64_t number = 0; number < options.samples_per_task; ++number)
          samples.push_back(maker.Make(*task, length, number, depth));
      }
    }
  }
  return samples;
}

}  // namespace oscar
