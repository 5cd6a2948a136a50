// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that a configuration file contains only 'key: scalar or list'. Anything else is refused
// with its line.
#include "tools/cli/config_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

std::string Refused(const std::string& yaml) {
  return ErrorOf<UsageError>([&] { ParseConfig(yaml, "c.yaml"); });
}

TEST(ConfigFile, KeepsOrderLinesAndQuotes) {
  const auto entries =
      ParseConfig("# comment\nb: 1\n\na: [x, \"2\"]\nc:\n  - y\nd: ~\ne: 'null'\nf:\n", "c");
  ASSERT_EQ(entries.size(), 6u);
  EXPECT_EQ(entries[0].key, "b");
  EXPECT_EQ(entries[0].line, 2);
  EXPECT_EQ(entries[0].values.at(0).text, "1");
  EXPECT_FALSE(entries[0].list);
  EXPECT_EQ(entries[1].line, 4);
  EXPECT_TRUE(entries[1].list);
  ASSERT_EQ(entries[1].values.size(), 2u);
  EXPECT_FALSE(entries[1].values[0].quoted);
  EXPECT_TRUE(entries[1].values[1].quoted);
  EXPECT_EQ(entries[2].values.at(0).text, "y");
  EXPECT_TRUE(entries[3].values.at(0).IsNull());
  EXPECT_FALSE(entries[4].values.at(0).IsNull());
  EXPECT_TRUE(entries[5].values.at(0).IsNull());
}

TEST(ConfigFile, EmptyFilesHoldNothing) {
  EXPECT_TRUE(ParseConfig("", "c").empty());
  EXPECT_TRUE(ParseConfig("# only a comment\n", "c").empty());
  EXPECT_TRUE(ParseConfig("---\n", "c").empty());
  EXPECT_TRUE(ParseConfig("{}\n", "c").empty());
  EXPECT_EQ(ParseConfig("---\na: |\n  x\n...\n", "c").at(0).values.at(0).text, "x\n");
}

// Pairs of a text and a part of the expected error; "" accepts any message of the YAML parser.
TEST(ConfigFile, RefusesWhatIsNotKeysWithScalarsOrLists) {
  const std::pair<std::string, const char*> refused[] = {
      {"a: 1\nb: 2\na: 3\n", ":3: \"a\" is given twice; the first time was on line 1"},
      {"a: &x 1\n", ":1: anchors"},
      {"a: &x [1]\n", ":1: anchors"},
      {"&x a: 1\nb: *x\n", "not allowed"},
      {"a: 1\nb: *a\n", ""},
      {"a: !!int 1\n", "tags"},
      {"a: !mine [1]\n", "tags"},
      {"a: 1\nb:\n  c: 1\n", ":3: a mapping inside \"b\""},
      {"a: [[1]]\n", ":1: a list inside a list"},
      {"a: [{b: 1}]\n", ""},
      {"- a\n", ""},
      {"word\n", ""},
      {"? [a]\n: 1\n", ""},
      {"? {a: 1}\n: 1\n", ""},
      {"a: 1\n---\nb: 2\n", "found a second"},
      {"a: [1\n", ""},
      {"a: 'x", "not YAML"},
      {"a: 'x\n", "not YAML"},
      {"a: 'x\nb: 1\n", "not YAML"},
      {"a: \"\\q\"\n", "not YAML"},
      {"a: " + std::string(100000, '['), ""},
      {std::string(100000, '{'), ""}};
  for (const auto& [yaml, why] : refused) {
    EXPECT_NE(Refused(yaml), "") << yaml.substr(0, 50);
    EXPECT_TRUE(Says(Refused(yaml), why)) << yaml.substr(0, 50);
  }
}

TEST(ConfigFile, ManyKeysTakeNoSquareOfTheirNumber) {
  std::string text;
  for (int i = 0; text.size() < 900'000; ++i) text += fmt::format("k{}: 1\n", i);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_GT(ParseConfig(text, "c.yaml").size(), 90'000u);
  // This takes a second. Comparing every key with all others took half a minute.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
  EXPECT_TRUE(
      Says(Refused(text + "k5: 2\n"), "\"k5\" is given twice; the first time was on line 6"));
}

TEST(ConfigFile, RefusesOversizedFiles) {
  const auto path = TestScratch("config") / "big.yaml";
  std::ofstream(path) << "a: " << std::string(size_t{1} << 20, 'x');
  EXPECT_THROW(ReadConfigFile(path.string()), UsageError);
  EXPECT_TRUE(Says(Refused("a: " + std::string(size_t{1} << 20, 'x')), "at most"));
}

TEST(ConfigFile, NamesTheFileItCannotRead) {
  EXPECT_THROW(ReadConfigFile("/nonexistent/c.yaml"), UsageError);
  EXPECT_THROW(ReadConfigFile(TestScratch("config_directory").string()), UsageError);
}

}  // namespace
}  // namespace oscar
