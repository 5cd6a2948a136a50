// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/needle_tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>

#include "export/evaluate/needle_words.h"

namespace oscar {
namespace {

const NeedleTask& Task(std::string_view name) {
  const auto tasks = NeedleTasks();
  return *std::find_if(tasks.begin(), tasks.end(),
                       [&](const NeedleTask& task) { return task.name == name; });
}

NeedleQuestion Make(std::string_view name, uint64_t seed = 1) {
  SplitMix64 random(seed);
  return MakeNeedleQuestion(Task(name), {}, random);
}

// Compares the tasks with RULER's table (arXiv 2404.06654).
TEST(NeedleTasks, EightVariantsOfRuler) {
  struct Row {
    std::string_view name;
    HaystackKind haystack;
    NeedleText key, value;
    int keys, values, queries;
  };
  using enum HaystackKind;
  using enum NeedleText;
  for (const Row& row :
       std::initializer_list<Row>{{"single_1", kNoise, kWords, kNumbers, 1, 1, 1},
                                  {"single_2", kProse, kWords, kNumbers, 1, 1, 1},
                                  {"single_3", kProse, kWords, kUuids, 1, 1, 1},
                                  {"multikey_1", kProse, kWords, kNumbers, 4, 1, 1},
                                  {"multikey_2", kNeedles, kWords, kNumbers, 1, 1, 1},
                                  {"multikey_3", kNeedles, kUuids, kUuids, 1, 1, 1},
                                  {"multivalue", kProse, kWords, kNumbers, 1, 4, 1},
                                  {"multiquery", kProse, kWords, kNumbers, 4, 1, 4}}) {
    const NeedleTask& task = Task(row.name);
    EXPECT_EQ(task.haystack, row.haystack) << row.name;
    EXPECT_EQ(task.key, row.key) << row.name;
    EXPECT_EQ(task.value, row.value) << row.name;
    EXPECT_EQ(task.num_keys, row.keys) << row.name;
    EXPECT_EQ(task.num_values, row.values) << row.name;
    EXPECT_EQ(task.num_queries, row.queries) << row.name;
    const NeedleQuestion question = Make(row.name);
    EXPECT_EQ(question.hidden.size(), static_cast<size_t>(row.keys * row.values)) << row.name;
    EXPECT_EQ(question.values.size(), static_cast<size_t>(row.queries * row.values)) << row.name;
  }
  EXPECT_EQ(NeedleTasks().size(), 10u);
}

std::string KeyIn(const std::string& sentence) {
  std::smatch match;
  EXPECT_TRUE(std::regex_match(
      sentence, match,
      std::regex("One of the special magic (?:numbers|uuids) for ([a-z0-9-]+) is: [0-9a-f-]+\\.")))
      << sentence;
  return match[1];
}

TEST(NeedleTasks, SingularTemplateWordForWord) {
  const NeedleQuestion question = Make("single_1");
  const std::string key = KeyIn(question.hidden[0].text);
  EXPECT_EQ(question.before,
            "A special magic number is hidden within the following text. Make sure to memorize it. "
            "I will quiz you about the number afterwards.\n");
  EXPECT_EQ(question.after, "\nWhat is the special magic number for " + key +
                                " mentioned in the provided text? The special magic number for " +
                                key + " mentioned in the provided text is");
  EXPECT_EQ(question.hidden[0].text,
            "One of the special magic numbers for " + key + " is: " + question.values[0] + ".");
  EXPECT_EQ(question.answer, " " + question.values[0] + ".");
}

TEST(NeedleTasks, PluralTemplateWordForWord) {
  const NeedleQuestion question = Make("multiquery");
  std::vector<std::string> keys;
  for (const std::string& value : question.values) {
    for (const HiddenSentence& sentence : question.hidden) {
      if (sentence.text.find(value) != std::string::npos) keys.push_back(KeyIn(sentence.text));
    }
  }
  ASSERT_EQ(keys.size(), 4u);
  const std::string query = keys[0] + ", " + keys[1] + ", " + keys[2] + ", and " + keys[3];
  EXPECT_EQ(
      question.before,
      "Some special magic numbers are hidden within the following text. Make sure to memorize "
      "it. I will quiz you about the numbers afterwards.\n");
  EXPECT_EQ(question.after, "\nWhat are all the special magic numbers for " + query +
                                " mentioned in the provided text? The special magic numbers for " +
                                query + " mentioned in the provided text are");
}

TEST(NeedleTasks, AnswersPointAtTheirSentences) {
  for (const NeedleTask& task : NeedleTasks()) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const NeedleQuestion question = Make(task.name, seed);
      std::set<std::string> values(question.values.begin(), question.values.end());
      EXPECT_EQ(values.size(), question.values.size());
      std::vector<int> seen(question.values.size(), 0);
      for (const HiddenSentence& sentence : question.hidden) {
        if (sentence.answer < 0) continue;
        const auto answer = static_cast<size_t>(sentence.answer);
        ++seen[answer];
        EXPECT_NE(sentence.text.find(question.values[answer]), std::string::npos) << task.name;
      }
      EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << task.name;
      ASSERT_EQ(question.value_offsets.size(), question.values.size());
      for (size_t i = 0; i < question.values.size(); ++i) {
        EXPECT_EQ(question.answer.compare(question.value_offsets[i], question.values[i].size(),
                                          question.values[i]),
                  0);
      }
    }
  }
}

// Several values of one key can only be listed in the order of the text.
TEST(NeedleTasks, ValuesOfOneKeyAreAskedForInTheOrderOfTheText) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const NeedleQuestion question = Make("multivalue", seed);
    for (size_t i = 0; i < question.hidden.size(); ++i)
      EXPECT_EQ(question.hidden[i].answer, static_cast<int>(i));
  }
}

TEST(NeedleTasks, KindsOfKeysAndValues) {
  const std::regex uuid("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  for (uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_TRUE(std::regex_match(Make("single_3", seed).values[0], uuid));
    EXPECT_TRUE(std::regex_match(KeyIn(Make("multikey_3", seed).hidden[0].text), uuid));
    EXPECT_TRUE(std::regex_match(Make("single_1", seed).values[0], std::regex("[1-9][0-9]{6}")));
    EXPECT_TRUE(std::regex_match(KeyIn(Make("single_1", seed).hidden[0].text),
                                 std::regex("[a-z]+-[a-z]+")));
  }
}

// Exactly the variables of the requested chain resolve to the requested value.
TEST(NeedleTasks, ChainsOfVariablesHold) {
  const std::regex statement("VAR ([A-Z]{5}) = (?:VAR )?(\\w+)");
  for (const char* name : {"variable_tracking", "variable_tracking_2"}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const NeedleQuestion question = Make(name, seed);
      std::map<std::string, std::string> value;
      std::map<std::string, int> hops;
      for (const HiddenSentence& sentence : question.hidden) {
        std::smatch match;
        ASSERT_TRUE(std::regex_match(sentence.text, match, statement)) << sentence.text;
        const bool number = std::isdigit(match.str(2)[0]) != 0;
        ASSERT_TRUE(number || value.contains(match[2])) << "used before it is assigned";
        value[match[1]] = number ? match.str(2) : value[match[2]];
        hops[match[1]] = number ? 0 : hops[match[2]] + 1;
      }
      for (size_t i = 0; i < question.values.size(); ++i)
        EXPECT_EQ(hops[question.values[i]], static_cast<int>(i));
      std::smatch asked;
      ASSERT_TRUE(std::regex_search(question.after, asked, std::regex("the value ([0-9]{5}) in")));
      std::set<std::string> expected;
      for (const auto& [variable, number] : value) {
        if (number == asked[1]) expected.insert(variable);
      }
      EXPECT_EQ(expected, std::set<std::string>(question.values.begin(), question.values.end()));
      EXPECT_EQ(expected.size(), 5u);
      EXPECT_EQ(value.size(), name == std::string("variable_tracking") ? 5u : 10u);
    }
  }
}

TEST(NeedleTasks, WordListsAreDistinctLowerCase) {
  for (const auto& words : {NeedleAdjectives(), NeedleNouns()}) {
    EXPECT_GE(words.size(), 60u);
    EXPECT_EQ(std::set<std::string_view>(words.begin(), words.end()).size(), words.size());
    for (const std::string_view word : words) {
      EXPECT_TRUE(std::all_of(word.begin(), word.end(), [](char c) {
        return c >= 'a' && c <= 'z';
      })) << word;
    }
  }
}

TEST(NeedleTasks, DistractorsNeverHoldTheAnswer) {
  const std::vector<std::string> words = {"ab", "cd", "ef"};  // six keys: collisions are certain
  SplitMix64 random(5);
  const NeedleQuestion question = MakeNeedleQuestion(Task("multikey_2"), words, random);
  const std::string key = KeyIn(question.hidden[0].text);
  for (int i = 0; i < 200; ++i) {
    const std::string distractor = MakeDistractor(question, words, random);
    EXPECT_NE(KeyIn(distractor), key);
    EXPECT_EQ(distractor.find(question.values[0]), std::string::npos);
  }
}

}  // namespace
}  // namespace oscar
