// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/store/zoo_name.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <filesystem>
#include <string>

#include "linalg/base/error.h"
#include "tests/support/run_program.h"

namespace oscar {
namespace {

TEST(ZooName, OrdinaryModelIdsAreNames) {
  for (const char* name :
       {"Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B-Instruct", "01-ai/Yi-1.5_chat", "a/b",
        "Zhongzhu/OSCAR", "x/console", "x/com10", "x/aux1", "conan/nullable"}) {
    EXPECT_EQ(ZooNameProblem(name), "") << name;
    EXPECT_EQ(ParseZooName(name, "test").text(), name);
  }
}

TEST(ZooName, WhatIsNotPlainlyANameIsRefused) {
  using namespace std::string_literals;
  ProgramStrings names = Words(
      "a / a/ /a a/b/c ../b a/.. a/. ./b a//b a/../b /etc/passwd a\\b/c a/b\\c a/.hidden a/-x a/x- "
      "a/x. a/x..y a/x--y a/\xc3\xa9 a/b:c C:/b a/b@1 a/b%2e con/x a/CON a/NUL.txt a/aux a/Lpt3 "
      "a/com0.json prn.x/y ~/x a/$b");
  for (const std::string& odd : {""s, "a/b c"s, "a/b\n"s, "a/b\0c"s, "a/" + std::string(97, 'x')})
    names.push_back(odd);
  for (const std::string& name : names) {
    EXPECT_NE(ZooNameProblem(name), "") << name;
    EXPECT_THROW(ParseZooName(name, "test"), InputError) << name;
  }
}

TEST(ZooName, NoAcceptedNameLeavesItsFolder) {
  EXPECT_TRUE(rc::check([] {
    static constexpr std::string_view kAlphabet = "aB9._-/\\@ \n";
    const auto letters =
        *rc::gen::container<std::string>(rc::gen::elementOf(std::string(kAlphabet)));
    if (!ZooNameProblem(letters).empty()) return;
    const std::filesystem::path joined = std::filesystem::path("/zoo/entries") / letters;
    RC_ASSERT(joined.lexically_normal() == joined);
    RC_ASSERT(std::distance(joined.begin(), joined.end()) == 5);  // "/", zoo, entries, ORG, MODEL
  }));
}

TEST(ZooVersion, ReadsWhatItWrites) {
  EXPECT_TRUE(rc::check([] {
    const auto number = rc::gen::inRange<int64_t>(0, 1'000'000);
    const ZooVersion version{*number, *number, *number};
    RC_ASSERT(ParseZooVersion(version.text()) == version);
  }));
}

TEST(ZooVersion, OneSpellingOnly) {
  using namespace std::string_literals;
  const std::string texts[] = {"",        "1",      "1.2",    "1.2.3.4", "v1.2.3",   "1.2.3 ",
                               " 1.2.3",  "01.2.3", "1.02.3", "1.2.",    "1..3",     ".1.2",
                               "-1.2.3",  "+1.2.3", "1.2.3a", "1.2.3-a", "1.2.3\0"s, "1000000.0.0",
                               "0x1.2.3", "1,2,3",  "latest", "../0.1.0"};
  for (const std::string& text : texts) EXPECT_FALSE(ParseZooVersion(text)) << text;
  EXPECT_TRUE(ParseZooVersion("0.0.0"));
  EXPECT_TRUE(ParseZooVersion("999999.999999.999999"));
}

TEST(ZooVersion, OrderIsNumericNotAlphabetic) {
  EXPECT_LT(*ParseZooVersion("0.9.0"), *ParseZooVersion("0.10.0"));
  EXPECT_LT(*ParseZooVersion("9.99.99"), *ParseZooVersion("10.0.0"));
  EXPECT_EQ(ParseZooVersion("1.2.3")->NextMinor().text(), "1.3.0");
}

TEST(ZooAddress, ARepositoryOfTheHubIsASourceOfOneVersion) {
  const ZooAddress hub = ParseZooAddress("hf:me/Tiny-oscar"),
                   pinned = ParseZooAddress("hf:me/Tiny-oscar@refs/pr/1"),
                   directory = ParseZooAddress("hf:folder/example/Tiny@0.1.0");
  EXPECT_TRUE(hub.repository && !hub.pinned);
  EXPECT_EQ(hub.source, "hf:me/Tiny-oscar");
  EXPECT_EQ(hub.reference.name.model, "Tiny-oscar");
  EXPECT_TRUE(pinned.repository && pinned.pinned);
  EXPECT_EQ(pinned.source, "hf:me/Tiny-oscar@refs/pr/1");
  EXPECT_FALSE(directory.repository);
  EXPECT_EQ(directory.source, "hf:folder");
  EXPECT_EQ(directory.reference.text(), "example/Tiny@0.1.0");
}

TEST(ZooReference, VersionOrLatestAfterTheAt) {
  EXPECT_FALSE(ParseZooReference("a/b").version);
  EXPECT_FALSE(ParseZooReference("a/b@latest").version);
  EXPECT_EQ(ParseZooReference("a/b@1.2.3").version->text(), "1.2.3");
  for (const char* text : {"a/b@", "a/b@1", "a@1.2.3", "a/b@1.2.3@2", "@1.2.3", "a/b@../x"})
    EXPECT_THROW(ParseZooReference(text), UsageError) << text;
}

}  // namespace
}  // namespace oscar
