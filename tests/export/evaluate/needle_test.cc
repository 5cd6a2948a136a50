// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/needle.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "linalg/base/error.h"
#include "tests/export/evaluate/tiny_tokenizer.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

NeedleOptions Options(int64_t length, int64_t samples = 1) {
  NeedleOptions options;
  options.lengths = {length};
  options.samples_per_task = samples;
  return options;
}

// Expects that answer ranges are in order and hold exactly the tokens of their values, and that the
// prompt contains each value.
void ExpectConsistent(const NeedleSample& sample, const Tokenizer& tokenizer) {
  const std::string where = sample.task + " of " + std::to_string(sample.length);
  EXPECT_LE(static_cast<int64_t>(sample.ids.size()), sample.length) << where;
  EXPECT_FALSE(sample.answers.empty()) << where;
  int64_t last = 0;
  for (const NeedleSample::Answer& answer : sample.answers) {
    ASSERT_LE(last, answer.begin) << where;
    ASSERT_LT(answer.begin, answer.end) << where;
    ASSERT_LE(answer.end, static_cast<int64_t>(sample.ids.size())) << where;
    last = answer.end;
    const auto holds = [&](int64_t begin, int64_t end) {
      const auto tokens = std::span(sample.ids).subspan(static_cast<size_t>(begin));
      return tokenizer.Decode(tokens.first(static_cast<size_t>(end - begin)), false)
                 .find(answer.value) != std::string::npos;
    };
    EXPECT_TRUE(holds(answer.begin, answer.end)) << where;
    // The range has no superfluous token.
    EXPECT_FALSE(holds(answer.begin + 1, answer.end)) << where;
    EXPECT_FALSE(holds(answer.begin, answer.end - 1)) << where;
    EXPECT_TRUE(Says(sample.prompt, answer.value)) << where;
    EXPECT_GE(answer.depth, 0) << where;
    EXPECT_LE(answer.depth, 100) << where;
  }
}

TEST(Needle, EveryTaskFillsTheLength) {
  const Tokenizer& tokenizer = TinyTokenizer();
  for (const int64_t length : {700, 2048, 4096}) {
    const std::vector<NeedleSample> samples =
        MakeNeedleSamples(Options(length, 2), tokenizer, 8192);
    ASSERT_EQ(samples.size(), 2 * NeedleTaskNames().size());
    for (const NeedleSample& sample : samples) {
      ExpectConsistent(sample, tokenizer);
      // One more unit would not fit: here a line of UUIDs has about 90 tokens, a word fewer than
      // 12.
      const bool lines = sample.task.starts_with("multikey_3");
      const bool noise = sample.task == "single_1" || sample.task.starts_with("variable") ||
                         sample.task == "multikey_2";
      EXPECT_GE(static_cast<int64_t>(sample.ids.size()), length - (lines   ? 150
                                                                   : noise ? 60
                                                                           : 12))
          << sample.task;
      EXPECT_EQ(tokenizer.Encode(sample.prompt + sample.answer, false), sample.ids);
    }
  }
}

TEST(Needle, LongestContextOfTheModel) {
  const Tokenizer& tokenizer = TinyTokenizer();
  NeedleOptions options = Options(8192);
  options.tasks = {"single_2"};
  EXPECT_GE(MakeNeedleSamples(options, tokenizer, 8192)[0].ids.size(), 8180u);
  options.lengths = {4096, 8193};
  EXPECT_THROW(MakeNeedleSamples(options, tokenizer, 8192), UsageError);
}

TEST(Needle, SamplesDependOnTheirOwnNameOnly) {
  const Tokenizer& tokenizer = TinyTokenizer();
  NeedleOptions options = Options(1000, 2);
  options.tasks = {"single_1", "multivalue"};
  const std::vector<NeedleSample> both = MakeNeedleSamples(options, tokenizer, 8192);
  ASSERT_EQ(both.size(), 4u);
  EXPECT_EQ(both[0].task, "single_1");
  EXPECT_EQ(both[3].task, "multivalue");
  EXPECT_NE(both[2].ids, both[3].ids);
  options.tasks = {"multivalue"};
  options.lengths = {600, 1000};
  const std::vector<NeedleSample> alone = MakeNeedleSamples(options, tokenizer, 8192);
  EXPECT_EQ(alone[2].ids, both[2].ids);
  EXPECT_EQ(alone[3].ids, both[3].ids);
  options.tasks = {"single_1", "single_2"};  // the same draws except for the name
  const std::vector<NeedleSample> named = MakeNeedleSamples(options, tokenizer, 8192);
  EXPECT_NE(named[0].answers[0].value, named[2].answers[0].value);
  options.tasks = {"multivalue"};
  options.seed = 1;
  EXPECT_NE(MakeNeedleSamples(options, tokenizer, 8192)[2].ids, both[2].ids);
}

TEST(Needle, DepthsOfFewSamplesAreSpread) {
  NeedleOptions options = Options(2000, 4);
  options.tasks = {"single_1", "single_2", "multikey_2"};
  const std::vector<NeedleSample> samples = MakeNeedleSamples(options, TinyTokenizer(), 8192);
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_NEAR(samples[i].depth, 12.5 + 25.0 * static_cast<double>(i % 4), 18) << samples[i].task;
    EXPECT_EQ(samples[i].depth, samples[i].answers[0].depth);
  }
}

TEST(Needle, GoesToTheDepthsAskedFor) {
  NeedleOptions options = Options(2000, 2);
  options.tasks = {"single_1", "multivalue", "multikey_1"};
  options.depths = {0, 50, 100};
  const std::vector<NeedleSample> samples = MakeNeedleSamples(options, TinyTokenizer(), 8192);
  ASSERT_EQ(samples.size(), 6u + 2 + 6);  // multivalue has no single depth
  for (const size_t first : {0u, 8u}) {
    for (size_t i = 0; i < 6; ++i) {
      const NeedleSample& sample = samples[first + i];
      EXPECT_EQ(sample.asked_depth, std::optional<double>(options.depths[i / 2]));
      EXPECT_NEAR(sample.depth, options.depths[i / 2], 8) << sample.task;
      EXPECT_EQ(sample.answer, samples[first + i % 2].answer);  // only the depth differs
    }
  }
  EXPECT_FALSE(samples[6].asked_depth);
  options.depths.clear();
  EXPECT_EQ(samples[6].ids, MakeNeedleSamples(options, TinyTokenizer(), 8192)[2].ids);
}

TEST(Needle, OwnProseAndWords) {
  NeedleOptions options = Options(800);
  options.tasks = {"single_2"};
  options.prose = "Whales sing. Nobody knows why.";
  for (const char* word : {"ab", "bc", "cd", "de", "ef", "fg", "gh", "hi", "ij", "jk", "kl", "lm",
                           "mn", "no", "op", "pq"})
    options.words.emplace_back(word);
  const NeedleSample sample = MakeNeedleSamples(options, TinyTokenizer(), 8192)[0];
  EXPECT_TRUE(Says(sample.prompt, "Whales sing. Nobody knows why. Whales sing."));
  options.words.resize(15);
  EXPECT_THROW(MakeNeedleSamples(options, TinyTokenizer(), 8192), InputError);
}

TEST(Needle, UsageErrors) {
  const Tokenizer& tokenizer = TinyTokenizer();
  const auto message = [&](const NeedleOptions& options) -> std::string {
    return ErrorOf<UsageError>([&] { MakeNeedleSamples(options, tokenizer, 8192); });
  };
  NeedleOptions options = Options(1000);
  options.tasks = {"multi_key_1"};
  EXPECT_TRUE(Says(message(options),
                   "unknown needle task \"multi_key_1\"; the nearest of 10 tasks: multikey_1,"));
  EXPECT_TRUE(Says(message(Options(1000, 0)), "0 samples"));
  EXPECT_TRUE(Says(message(Options(64)), "takes at least"));
  EXPECT_TRUE(Says(message(NeedleOptions()), "no context length"));
  options = Options(1000);
  options.depths = {50, 101};
  EXPECT_TRUE(Says(message(options), "depth 101"));
}

// Covers the token layouts of many families: separate tokens for spaces, digits alone or in threes,
// special tokens at the beginning or the end.
class NeedleTokenizers : public testing::TestWithParam<const char*> {};

TEST_P(NeedleTokenizers, AnswersAreFound) {
  OSCAR_PACK_OR_SKIP(pack, std::string("tokenizers/") + GetParam());
  const Tokenizer tokenizer = Tokenizer::Load(pack / "tokenizer.json");
  for (const NeedleSample& sample : MakeNeedleSamples(Options(3000), tokenizer, 8192)) {
    ExpectConsistent(sample, tokenizer);
    // The tokens equal those of the encoded prompt, except for special tokens at its end.
    const std::vector<int32_t> all = tokenizer.Encode(sample.prompt + sample.answer, true);
    ASSERT_GE(all.size(), sample.ids.size());
    EXPECT_TRUE(std::equal(sample.ids.begin(), sample.ids.end(), all.begin()));
    EXPECT_LE(all.size(), sample.ids.size() + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, NeedleTokenizers,
                         testing::Values("qwen3", "qwen3.5", "llama3", "glm4", "gpt-oss", "tekken",
                                         "deepseek-v2", "deepseek-v3", "smollm", "gpt2",
                                         "cl100k-removed", "flags-nfkc"),
                         [](const auto& layout) {
                           std::string name = layout.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == '-' || c == '.'; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace oscar
