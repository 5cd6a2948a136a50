// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/tool_calls.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "capture/files/strict_json.h"
#include "export/evaluate/tool_call_tasks.h"
#include "linalg/base/error.h"
#include "tests/export/evaluate/tiny_tokenizer.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

std::vector<NeedleSample> Samples(ToolCallOptions options) {
  return MakeToolCallSamples(options, TinyTokenizer(), 8192);
}

TEST(ToolCallTasks, ArgumentsStandInTheConversationAndInTheCallInOrder) {
  for (const ToolCallTask& task : ToolCallTasks()) {
    SplitMix64 random(3);
    const ToolCallQuestion question = task.make(random);
    const Json call = ParseStrictJson(question.call, task.name);
    EXPECT_TRUE(call.at("name").is_string() && call.at("arguments").is_object()) << task.name;
    std::string said = question.ask;
    for (const Exchange& exchange : question.hidden) said += exchange.user;
    size_t at = 0, copied = 0;
    for (const std::string& argument : question.arguments) {
      at = question.call.find(argument, at);
      ASSERT_NE(at, std::string::npos) << task.name << ": " << argument;
      at += argument.size();
      copied += said.find(argument) != std::string::npos ? 1 : 0;
    }
    // The new line of code_edit is not in the conversation: it is the old line with another number.
    EXPECT_EQ(copied, question.arguments.size() - (task.name == "code_edit" ? 1 : 0)) << task.name;
    EXPECT_TRUE(Says(ToolCallInstruction(), call.at("name").get<std::string>() + "("));
  }
}

TEST(ToolCalls, FillTheLengthAndSayWhereArgumentsStand) {
  const auto samples = Samples({.lengths = {3000, 6000}, .samples_per_task = 2});
  ASSERT_EQ(samples.size(), 2 * 2 * ToolCallTasks().size());
  for (const NeedleSample& sample : samples) {
    const auto tokens = std::ssize(sample.ids);
    EXPECT_LE(tokens, sample.length) << sample.task;
    EXPECT_GT(tokens, sample.length - 250) << sample.task;  // a filler has fewer tokens
    EXPECT_TRUE(sample.prompt.ends_with("\nAssistant: "));
    ASSERT_GE(sample.answers.size(), 2U);
    int64_t last = 0;
    for (const NeedleSample::Answer& answer : sample.answers) {
      const auto part = std::span(sample.ids)
                            .subspan(static_cast<size_t>(answer.begin),
                                     static_cast<size_t>(answer.end - answer.begin));
      EXPECT_TRUE(Says(TinyTokenizer().Decode(part, false), answer.value));
      EXPECT_GE(answer.begin, last);
      last = answer.end;
    }
    // All answers are in the call, within the last 400 tokens.
    EXPECT_GT(sample.answers.front().begin, tokens - 400);
  }
}

// A name is defined in the first tenth of the text. In a context of 34K tokens, its call is thus
// 30K tokens later.
TEST(ToolCalls, HideWhatTheyAskForFarBack) {
  for (const NeedleSample& sample : Samples({.lengths = {8000}, .samples_per_task = 3})) {
    const double limit = sample.task == "defined_name" ? 15 : 75;
    EXPECT_LT(sample.depth, limit) << sample.task;
  }
  const auto copied =
      Samples({.lengths = {8000}, .samples_per_task = 3, .tasks = {"copied_argument"}});
  EXPECT_LT(copied[0].depth, copied[1].depth);
  EXPECT_LT(copied[1].depth, copied[2].depth);
}

TEST(ToolCalls, FollowFromTheSeedAndFromNoOtherTask) {
  const ToolCallOptions options{.lengths = {4000}, .seed = 9};
  ToolCallOptions one = options, other = options;
  one.tasks = {"json_edit"};
  other.seed = 10;
  const auto all = Samples(options), same = Samples(options), alone = Samples(one),
             changed = Samples(other);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].ids, same[i].ids);
    EXPECT_NE(all[i].ids, changed[i].ids);
  }
  EXPECT_EQ(all[2].ids, alone[0].ids);
}

// Every chat template in the repository accepts these conversations. The call begins the model's
// turn.
TEST(ToolCalls, AreWrittenInTheModelsOwnTemplate) {
  for (const char* model :
       {"qwen3", "gemma3", "mistral", "llama3.1", "glm4", "deepseek-v3", "gpt-oss"}) {
    ChatOptions options;
    options.template_file = TestData(std::string("chat_templates/") + model) / "template.jinja";
    options.variables = {"bos_token=<s>", "eos_token=</s>"};
    const auto chat = ChatFormat::Find({}, options);
    ASSERT_TRUE(chat) << model;
    const NeedleSample sample =
        Samples({.lengths = {4000}, .tasks = {"copied_argument"}, .chat = &*chat}).front();
    EXPECT_FALSE(Says(sample.prompt, "User: ")) << model;
    EXPECT_TRUE(Says(sample.prompt, "Ship the order of")) << model;
    EXPECT_LE(sample.ids.size(), 4000U) << model;
    EXPECT_EQ(sample.answers.size(), 2U) << model;
  }
}

// The tokens of an argument are found however a tokenizer splits digits and quotes.
TEST(ToolCalls, ArgumentsAreFoundWithEveryTokenizer) {
  OSCAR_PACK_OR_SKIP(pack, "tokenizers");
  for (const char* layout :
       {"qwen3", "llama3", "glm4", "gpt-oss", "tekken", "deepseek-v3", "gpt2"}) {
    const Tokenizer tokenizer = Tokenizer::Load(pack / layout / "tokenizer.json");
    for (const NeedleSample& sample :
         MakeToolCallSamples({.lengths = {32768}}, tokenizer, 131072)) {
      EXPECT_LE(sample.ids.size(), 32768U) << layout;
      for (const NeedleSample::Answer& answer : sample.answers) {
        const auto part = std::span(sample.ids)
                              .subspan(static_cast<size_t>(answer.begin),
                                       static_cast<size_t>(answer.end - answer.begin));
        EXPECT_TRUE(Says(tokenizer.Decode(part, false), answer.value)) << layout;
      }
      // The name is defined about 29K tokens before the call.
      if (sample.task == "defined_name") {
        EXPECT_LT(sample.depth, 11) << layout;
      }
    }
  }
}

TEST(ToolCalls, AreRefusedByName) {
  EXPECT_THROW(Samples({.lengths = {9000}}), UsageError);  // beyond the last position
  EXPECT_THROW(Samples({.lengths = {300}}), UsageError);   // too short for the question
  EXPECT_TRUE(Says(ErrorOf<UsageError>([&] { CheckToolCallTask("json_edits"); }), "json_edit"));
}

}  // namespace
}  // namespace oscar
