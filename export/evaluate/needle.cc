// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/needle.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "capture/files/nearest.h"
#include "capture/files/quote.h"
#include "capture/text/builtin_corpus.h"
#include "capture/text/packing.h"
#include "export/evaluate/haystack.h"
#include "export/evaluate/needle_tasks.h"
#include "linalg/error.h"

namespace oscar {
namespace {

const NeedleTask& FindTask(const std::string& name) {
  for (const NeedleTask& task : NeedleTasks()) {
    if (task.name == name) return task;
  }
  const std::vector<std::string> names = NeedleTaskNames();
  throw UsageError(fmt::format("found needle task {}; the nearest of {}: {}", Quoted(name),
                               names.size(), Nearest(name, names)));
}

// Text to ids as a prompt: the special tokens that the tokenizer puts in front, none behind (the
// answer is continued there).
class PromptEncoder {
 public:
  explicit PromptEncoder(const Tokenizer& tokenizer)
      : tokenizer_(tokenizer), special_(LeadingSpecialTokens(tokenizer)) {}

  std::vector<int32_t> Encode(const std::string& text) const {
    std::vector<int32_t> ids = special_;
    const std::vector<int32_t> plain = tokenizer_.Encode(text, false);
    ids.insert(ids.end(), plain.begin(), plain.end());
    return ids;
  }

  // Tokens [begin, end) that hold `value`, of which and of what follows `tail` and `after` bytes
  // are left to the end of the text. Found from the end by decoding: a normalizer may change the
  // length of the prompt, but answers are plain ASCII.
  NeedleSample::Answer FindValue(const std::vector<int32_t>& ids, size_t tail, size_t after,
                                 const std::string& value) const {
    const auto decode = [&](size_t begin, size_t end) {
      return tokenizer_.Decode(std::span(ids).subspan(begin, end - begin), false);
    };
    size_t end = ids.size();
    while (end > 0 && decode(end - 1, ids.size()).size() <= after) --end;
    size_t begin = end;
    while (begin > 0 && decode(begin, ids.size()).size() < tail) --begin;
    if (decode(begin, end).find(value) == std::string::npos) {
      throw InputError(fmt::format(
          "the tokenizer does not give the answer {} back (found {}), so needle recall cannot be "
          "scored with it; leave the needle tasks out",
          Quoted(value), Quoted(decode(begin, end))));
    }
    return {.begin = static_cast<int64_t>(begin),
            .end = static_cast<int64_t>(end),
            .depth = 0,
            .value = value};
  }

 private:
  const Tokenizer& tokenizer_;
  std::vector<int32_t> special_;
};

class SampleMaker {
 public:
  SampleMaker(const NeedleOptions& options, const Tokenizer& tokenizer, std::string_view prose)
      : options_(options), encoder_(tokenizer), prose_(prose) {}

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
      throw UsageError(fmt::format(
          "needle length {}: task {} takes at least {} tokens with this tokenizer; give a longer "
          "length or leave the task out",
          length, task.name, smallest));
    }
    build(LargestSize(haystack.min_units(), smallest, length, build));
    sample.answer = question.answer;
    FindAnswers(question, context, sample);
    return sample;
  }

 private:
  // Words of one task must not shift when another is left out.
  uint64_t Seed(const NeedleTask& task, int64_t length, int64_t number) const {
    uint64_t seed = SplitMix64(options_.seed).Next();
    const auto add = [&](uint64_t value) { seed = SplitMix64(seed ^ value).Next(); };
    for (const char c : task.name) add(static_cast<uint8_t>(c));
    add(static_cast<uint64_t>(length));
    add(static_cast<uint64_t>(number));
    return seed;
  }

  // The number of units whose prompt and answer have at most `length` tokens, while one more unit
  // has too many: by interpolation, and by bisection where that is slow.
  template <class CountTokens>
  static int64_t LargestSize(int64_t low, int64_t low_tokens, int64_t length, CountTokens count) {
    std::optional<int64_t> high;
    int64_t high_tokens = 0;
    double tokens_per_unit = 8;
    for (int step = 0; !high || *high - low > 1; ++step) {
      const auto rest = static_cast<double>(length - low_tokens);
      int64_t size = low + std::max<int64_t>(1, static_cast<int64_t>(rest / tokens_per_unit));
      if (high && step > 6) size = low + (*high - low) / 2;
      if (high) size = std::clamp(size, low + 1, *high - 1);
      const int64_t tokens = count(size);
      if (tokens > low_tokens) {
        tokens_per_unit =
            static_cast<double>(tokens - low_tokens) / static_cast<double>(size - low);
      }
      if (tokens <= length) {
        low = size;
        low_tokens = tokens;
        if (high && high_tokens > low_tokens) {
          tokens_per_unit =
              static_cast<double>(high_tokens - low_tokens) / static_cast<double>(*high - low);
        }
      } else {
        high = size;
        high_tokens = tokens;
      }
    }
    return low;
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
  if (options.lengths.empty()) throw UsageError("needle tasks: no length given");
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
    throw InputError(fmt::format("needle tasks: a list of {} words, expected at least {}",
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
