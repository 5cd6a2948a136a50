// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every way in which a configuration file can be more than 'key: scalar or list' is refused with
// its line.
#include "tools/cli/config_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "linalg/base/error.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

std::string ErrorOf(const std::string& yaml) {
  try {
    ParseConfig(yaml, "c.yaml");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
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

TEST(ConfigFile, RefusesAKeyGivenTwice) {
  EXPECT_EQ(ErrorOf("a: 1\nb: 2\na: 3\n"),
            "c.yaml:3: \"a\" is given twice; the first time was on line 1");
}

TEST(ConfigFile, RefusesAnchorsAliasesAndTags) {
  EXPECT_EQ(ErrorOf("a: &x 1\n"), "c.yaml:1: anchors (&name) are not allowed; write the value out");
  EXPECT_EQ(ErrorOf("a: &x [1]\n"),
            "c.yaml:1: anchors (&name) are not allowed; write the value out");
  EXPECT_NE(ErrorOf("&x a: 1\nb: *x\n").find("not allowed"), std::string::npos);
  EXPECT_NE(ErrorOf("a: 1\nb: *a\n"), "accepted");
  EXPECT_NE(ErrorOf("a: !!int 1\n").find("tags"), std::string::npos);
  EXPECT_NE(ErrorOf("a: !mine [1]\n").find("tags"), std::string::npos);
}

TEST(ConfigFile, RefusesNestingAndOtherShapes) {
  EXPECT_EQ(ErrorOf("a: 1\nb:\n  c: 1\n"),
            "c.yaml:3: a mapping inside \"b\" is not allowed; keys are not nested");
  EXPECT_EQ(ErrorOf("a: [[1]]\n"), "c.yaml:1: a list inside a list is not allowed");
  EXPECT_NE(ErrorOf("a: [{b: 1}]\n"), "accepted");
  EXPECT_NE(ErrorOf("- a\n"), "accepted");
  EXPECT_NE(ErrorOf("word\n"), "accepted");
  EXPECT_NE(ErrorOf("? [a]\n: 1\n"), "accepted");
  EXPECT_NE(ErrorOf("? {a: 1}\n: 1\n"), "accepted");
  EXPECT_EQ(ErrorOf("a: 1\n---\nb: 2\n"), "c.yaml: expected one YAML document, found a second");
}

TEST(ConfigFile, RefusesWhatIsNotYaml) {
  EXPECT_NE(ErrorOf("a: [1\n"), "accepted");
  EXPECT_NE(ErrorOf("a: 'x").find("not YAML"), std::string::npos);
  EXPECT_NE(ErrorOf("a: 'x\n").find("not YAML"), std::string::npos);
  EXPECT_NE(ErrorOf("a: 'x\nb: 1\n").find("not YAML"), std::string::npos);
  EXPECT_NE(ErrorOf("a: \"\\q\"\n").find("not YAML"), std::string::npos);
  EXPECT_NE(ErrorOf(std::string("a: ") + std::string(100000, '[')), "accepted");
  EXPECT_NE(ErrorOf(std::string(100000, '{')), "accepted");
}

TEST(ConfigFile, ManyKeysTakeNoSquareOfTheirNumber) {
  std::string text;
  for (int i = 0; text.size() < 900'000; ++i) text += fmt::format("k{}: 1\n", i);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_GT(ParseConfig(text, "c.yaml").size(), 90'000u);
  // It takes a second; a search through all keys for each took half a minute.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
  EXPECT_NE(ErrorOf(text + "k5: 2\n").find("\"k5\" is given twice; the first time was on line 6"),
            std::string::npos);
}

TEST(ConfigFile, RefusesOversizedFiles) {
  const auto path = TestScratch("config") / "big.yaml";
  std::ofstream(path) << "a: " << std::string(size_t{1} << 20, 'x');
  EXPECT_THROW(ReadConfigFile(path.string()), UsageError);
  EXPECT_NE(ErrorOf("a: " + std::string(size_t{1} << 20, 'x')).find("at most"), std::string::npos);
}

TEST(ConfigFile, NamesTheFileItCannotRead) {
  EXPECT_THROW(ReadConfigFile("/nonexistent/c.yaml"), UsageError);
  EXPECT_THROW(ReadConfigFile(TestScratch("config_directory").string()), UsageError);
}

}  // namespace
}  // namespace oscar
