// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/tool_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/nearest.h"
#include "capture/files/quote.h"
#include "capture/text/data/packing.h"
#include "capture/text/template/json_value.h"
#include "export/evaluate/prompt_fit.h"
#include "export/evaluate/tool_call_tasks.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr double kTokensPerFiller = 100;  // a first guess

const ToolCallTask& FindToolCallTask(const std::string& name) {
  for (const ToolCallTask& task : ToolCallTasks())
    if (task.name == name) return task;
  const std::vector<std::string> names = ToolCallTaskNames();
  throw UsageError(fmt::format("unknown tool-call task {}; the nearest of {} tasks: {}",
                               Quoted(name), names.size(), Nearest(name, names)));
}

// Renders the conversation up to the start of the call.
std::string Render(const std::vector<Exchange>& said, const std::string& ask,
                   const ChatFormat* chat) {
  if (chat == nullptr) {
    std::string text;
    for (const Exchange& exchange : said)
      text += fmt::format("User: {}\nAssistant: {}\n", exchange.user, exchange.assistant);
    return text + fmt::format("User: {}\nAssistant: ", ask);
  }
  Json messages = Json::array();
  const auto add = [&](const char* role, const std::string& content) {
    messages.push_back({{"role", role}, {"content", content}});
  };
  for (const Exchange& exchange : said) {
    add("user", exchange.user);
    add("assistant", exchange.assistant);
  }
  add("user", ask);
  const std::string where = "tool-call conversation";
  ChatRow row;
  row.messages = jinja::ParseJsonValue(messages.dump(), where);
  return chat->Render(row, where, true).text;
}

class Conversation {
 public:
  Conversation(const ToolCallOptions& options, const ToolCallTask& task, double share,
               SplitMix64& random)
      : options_(options),
        question_(task.make(random)),
        share_(share * task.hidden_within),
        fillers_(random.Next()) {}

  const ToolCallQuestion& question() const { return question_; }

  // Returns the prompt with `num_fillers` fillers around the hidden exchanges.
  std::string Build(int64_t num_fillers) {
    std::vector<Exchange> said = {{ToolCallInstruction(), "I will."}};
    const auto append = [&](const std::vector<Exchange>& more) {
      said.insert(said.end(), more.begin(), more.end());
    };
    while (std::ssize(made_) < num_fillers) made_.push_back(MakeFiller(fillers_));
    const auto place = static_cast<int64_t>(share_ * static_cast<double>(num_fillers));
    for (int64_t i = 0; i < num_fillers; ++i) {
      if (i == place) append(question_.hidden);
      append(made_[static_cast<size_t>(i)]);
    }
    if (num_fillers == 0) append(question_.hidden);
    return Render(said, question_.ask, options_.chat);
  }

 private:
  const ToolCallOptions& options_;
  ToolCallQuestion question_;
  double share_;  // share of the fillers that come before the hidden exchanges
  SplitMix64 fillers_;
  std::vector<std::vector<Exchange>> made_;
};

uint64_t ConversationSeed(uint64_t seed, const ToolCallTask& task, int64_t length, int64_t number) {
  seed = SplitMix64(seed).Next();
  const auto add = [&](uint64_t value) { seed = SplitMix64(seed ^ value).Next(); };
  for (const char c : task.name) add(static_cast<uint8_t>(c));
  add(static_cast<uint64_t>(length));
  add(static_cast<uint64_t>(number));
  return seed;
}

void FindArguments(const PromptEncoder& encoder, const ToolCallQuestion& question,
                   NeedleSample& sample) {
  size_t at = 0;  // bytes of the call that were already searched
  for (const std::string& argument : question.arguments) {
    const size_t begin = sample.answer.find(argument, at);
    OSCAR_CHECK(begin != std::string::npos);
    at = begin + argument.size();
    sample.answers.push_back(encoder.FindValue(sample.ids, sample.answer.size() - begin,
                                               sample.answer.size() - at, argument));
    sample.answers.back().depth = sample.depth;
  }
}

NeedleSample MakeConversation(const ToolCallOptions& options, const PromptEncoder& encoder,
                              const ToolCallTask& task, int64_t length, int64_t number) {
  SplitMix64 random(ConversationSeed(options.seed, task, length, number));
  const double share = (static_cast<double>(number) + random.Uniform()) /
                       static_cast<double>(options.samples_per_task);
  Conversation conversation(options, task, share, random);
  const ToolCallQuestion& question = conversation.question();
  NeedleSample sample;
  sample.task = task.name;
  sample.length = length;
  sample.answer = question.call;
  const auto build = [&](int64_t num_fillers) {
    sample.prompt = conversation.Build(num_fillers);
    sample.ids = encoder.Encode(sample.prompt + sample.answer);
    return std::ssize(sample.ids);
  };
  const int64_t smallest = build(0);
  if (smallest > length) {
    throw UsageError(
        fmt::format("tool-call length {}: task {} takes at least {} tokens with this tokenizer; "
                    "give a larger length, or leave out the task",
                    length, task.name, smallest));
  }
  build(LargestSize(0, smallest, length, kTokensPerFiller, build));
  const size_t hidden = sample.prompt.find(question.hidden.back().user);
  OSCAR_CHECK(hidden != std::string::npos);
  sample.depth = 100 * static_cast<double>(hidden) / static_cast<double>(sample.prompt.size());
  FindArguments(encoder, question, sample);
  return sample;
}

}  // namespace

std::vector<std::string> ToolCallTaskNames() {
  std::vector<std::string> names;
  for (const ToolCallTask& task : ToolCallTasks()) names.emplace_back(task.name);
  return names;
}

void CheckToolCallTask(const std::string& name) { FindToolCallTask(name); }

std::vector<NeedleSample> MakeToolCallSamples(const ToolCallOptions& options,
                                              const Tokenizer& tokenizer, int64_t max_positions) {
  for (const int64_t length : options.lengths) {
    if (length > max_positions) {
      throw UsageError(fmt::format("tool-call length {}: the model supports {} positions", length,
                                   max_positions));
    }
  }
  // The chat template adds special tokens itself.
  const PromptEncoder encoder(tokenizer, options.chat == nullptr ? LeadingSpecialTokens(tokenizer)
                                                                 : std::vector<int32_t>());
  std::vector<NeedleSample> samples;
  for (const int64_t length : options.lengths) {
    for (const std::string& name : options.tasks.empty() ? ToolCallTaskNames() : options.tasks) {
      for (int64_t number = 0; number < options.samples_per_task; ++number)
        samples.push_back(
            MakeConversation(options, encoder, FindToolCallTask(name), length, number));
    }
  }
  return samples;
}

}  // namespace oscar
