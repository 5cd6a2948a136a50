// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/haystack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "linalg/base/error.h"

namespace oscar {
namespace {

const NeedleTask& HaystackTask(std::string_view name) {
  const auto tasks = NeedleTasks();
  return *std::find_if(tasks.begin(), tasks.end(),
                       [&](const NeedleTask& task) { return task.name == name; });
}

// Returns ten sentences of four words each: "S3 a b end."
std::string TenSentences() {
  std::string text;
  for (int i = 0; i < 10; ++i) text += " S" + std::to_string(i) + "\n a  b end.";
  return text;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

struct Made {
  NeedleQuestion question;
  std::vector<Context> contexts;
};

Made MakeContexts(std::string_view name, const std::vector<int64_t>& sizes,
                  const std::string& text = TenSentences(), uint64_t seed = 3,
                  const NeedlePlace& place = {}) {
  SplitMix64 random(seed);
  Made made;
  const std::vector<std::string> words;
  made.question = MakeNeedleQuestion(HaystackTask(name), words, random);
  ProseHaystack prose(text);
  Haystack haystack(HaystackTask(name), made.question, prose, words, random, place);
  for (const int64_t size : sizes) made.contexts.push_back(haystack.Build(size));
  return made;
}

TEST(ProseHaystack, WordsAndSentences) {
  ProseHaystack prose("One two.  Three\n(four!) \"Five?\" six");
  std::vector<size_t> ends;
  EXPECT_EQ(prose.Take(6, ends), "One two. Three (four!) \"Five?\" six");
  EXPECT_EQ(ends, (std::vector<size_t>{8, 22, 30, 34}));
  EXPECT_EQ(prose.Take(3, ends), "One two. Three");
  EXPECT_EQ(ends, (std::vector<size_t>{8, 14}));
  // A text that is too short is repeated.
  EXPECT_EQ(prose.Take(8, ends), "One two. Three (four!) \"Five?\" six One two.");
  EXPECT_THROW(ProseHaystack(" \n"), InputError);
  EXPECT_THROW(ProseHaystack("\xFF"), InputError);
}

TEST(Haystack, NoiseLinesAroundTheNeedle) {
  const Made made = MakeContexts("single_1", {7});
  const std::vector<std::string> lines = Lines(made.contexts[0].text);
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), made.question.hidden[0].text), 1);
  EXPECT_EQ(std::count(lines.begin(), lines.end(),
                       "The grass is green. The sky is blue. The sun is yellow. Here we go. There "
                       "and back again."),
            7);
}

TEST(Haystack, NeedleHaystackIsAllDistractors) {
  const Made made = MakeContexts("multikey_2", {30, 40});
  const std::vector<std::string> lines = Lines(made.contexts[1].text);
  ASSERT_EQ(lines.size(), 41u);
  for (const std::string& line : lines)
    EXPECT_TRUE(line.starts_with("One of the special magic numbers for ")) << line;
  // A larger haystack keeps the lines of a smaller one.
  for (const std::string& line : Lines(made.contexts[0].text))
    EXPECT_NE(std::find(lines.begin(), lines.end(), line), lines.end());
}

// A needle in prose follows a sentence; it is never inside one.
TEST(Haystack, ProseNeedlesStandBetweenSentences) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Made made = MakeContexts("multikey_1", {40, 4}, TenSentences(), seed);
    for (const Context& context : made.contexts) {
      std::string rest = context.text;
      size_t from = 0;
      for (size_t i = 0; i < 4; ++i) {
        const std::string& needle = made.question.hidden[i].text;
        const size_t at = context.text.find(needle);
        ASSERT_NE(at, std::string::npos);
        EXPECT_GE(at, from) << "in the order of the question";
        from = at;
        EXPECT_TRUE(at == 0 || context.text.compare(at - 2, 2, ". ") == 0) << context.text;
        EXPECT_NEAR(context.depths[i],
                    100.0 * static_cast<double>(at) / static_cast<double>(context.text.size()),
                    1e-9);
        const size_t in_rest = rest.find(needle);
        rest.erase(in_rest == 0 ? 0 : in_rest - 1, needle.size() + 1);
      }
      // Without the needles, the text is the unchanged prose.
      std::vector<size_t> ends;
      ProseHaystack prose(TenSentences());
      EXPECT_EQ(rest, prose.Take(&context == &made.contexts[0] ? 40 : 4, ends));
    }
  }
}

TEST(Haystack, FewSamplesCoverAllDepths) {
  for (const char* task : {"single_1", "single_2", "multikey_3"}) {
    for (int64_t stratum = 0; stratum < 4; ++stratum) {
      const Made made =
          MakeContexts(task, {400}, TenSentences(), 9, {.stratum = stratum, .num_strata = 4});
      EXPECT_GE(made.contexts[0].depths[0], 25.0 * static_cast<double>(stratum) - 5) << task;
      EXPECT_LE(made.contexts[0].depths[0], 25.0 * static_cast<double>(stratum + 1) + 5) << task;
    }
  }
}

TEST(Haystack, TheAnswerStandsAtTheDepthAskedFor) {
  for (const char* task : {"single_1", "single_2", "multikey_1", "multikey_3"}) {
    for (const double depth : {0.0, 10.0, 50.0, 85.0, 100.0}) {
      for (uint64_t seed = 0; seed < 10; ++seed) {
        const Made made = MakeContexts(task, {2000}, TenSentences(), seed, {.depth = depth});
        const Made free = MakeContexts(task, {2000}, TenSentences(), seed);
        double last = -1, last_free = -1;
        for (size_t i = 0; i < made.question.hidden.size(); ++i) {
          const std::string& sentence = made.question.hidden[i].text;
          ASSERT_EQ(sentence, free.question.hidden[i].text);
          const size_t at = made.contexts[0].text.find(sentence);
          ASSERT_NE(at, std::string::npos);
          EXPECT_NEAR(
              made.contexts[0].depths[i],
              100.0 * static_cast<double>(at) / static_cast<double>(made.contexts[0].text.size()),
              1e-9);
          if (made.question.hidden[i].answer >= 0) {
            EXPECT_NEAR(made.contexts[0].depths[i], depth, 3) << task << " " << seed;
            continue;
          }
          EXPECT_GT(made.contexts[0].depths[i], last);
          EXPECT_GT(free.contexts[0].depths[i], last_free);
          EXPECT_NEAR(made.contexts[0].depths[i], free.contexts[0].depths[i], 3);
          last = made.contexts[0].depths[i];
          last_free = free.contexts[0].depths[i];
        }
      }
    }
  }
  for (const NeedleTask& task : NeedleTasks()) {
    const bool one = task.name.starts_with("single") || task.name.starts_with("multikey");
    EXPECT_EQ(HasOnePlace(task), one) << task.name;
  }
}

TEST(Haystack, SmallestSizeHoldsAllSentences) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Made made = MakeContexts("variable_tracking", {5}, TenSentences(), seed);
    const std::vector<std::string> lines = Lines(made.contexts[0].text);
    ASSERT_EQ(lines.size(), 10u);
    size_t next = 0;
    for (const std::string& line : lines) {
      if (next < 5 && line == made.question.hidden[next].text) ++next;
    }
    EXPECT_EQ(next, 5u);
    EXPECT_EQ(made.contexts[0].depths.size(), 5u);
  }
}

}  // namespace
}  // namespace oscar
