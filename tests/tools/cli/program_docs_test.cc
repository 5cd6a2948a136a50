// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that man pages and completions contain every option, and that text in them is escaped.
#include "tools/cli/program_docs.h"

#include <gtest/gtest.h>

#include <fstream>

#include "linalg/base/error.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"
#include "tests/tools/cli/sample_command.h"
#include "tools/cli/command.h"
#include "tools/cli/command_line.h"

namespace oscar {
namespace {

struct KettleOptions {
  bool loud = false;
  std::string odd;
};

class ProgramDocsTest : public testing::Test {
 protected:
  static OptionTable Kettle(KettleOptions* options) {
    OptionTable table("oscar-brew kettle", "Boils [water]: it's hot.");
    table.Add(&options->loud, {.name = "loud", .help = "It's -loud-; very"});
    table.Add(&options->odd, {.name = "odd", .help = "[a]: 'b' \\ $(c)", .choices = {"", "x"}});
    return table;
  }
  BrewOptions brew_;
  KettleOptions kettle_;
  const ProgramDocs docs_{"oscar-brew", "Brews.", {BrewTable(&brew_), Kettle(&kettle_)}};
};

TEST_F(ProgramDocsTest, EveryOptionIsInEachOfThem) {
  for (const OptionTable& table : docs_.tables) {
    for (const Option& option : table.options()) {
      const std::string flag = LongFlag(option).substr(2);
      std::string roff;
      for (const char c : option.flag()) roff += c == '-' ? std::string("\\-") : std::string(1, c);
      EXPECT_NE(ManPage(docs_).find(roff), std::string::npos) << flag;
      EXPECT_NE(ShellCompletion(docs_, "bash").find(flag), std::string::npos) << flag;
    }
  }
  EXPECT_THROW(ShellCompletion(docs_, "csh"), UsageError);
}

// Asks bash itself for completions.
TEST_F(ProgramDocsTest, BashCompletesFlagsValuesAndVerbs) {
  const auto folder = TestScratch("completion");
  std::ofstream(folder / "completion") << ShellCompletion(docs_, "bash");
  const auto complete = [&](const std::string& words, int word) {
    const ProgramExit exit = RunProgram(
        "/bin/bash", {"--norc", "-c",
                      "source " + (folder / "completion").string() + "; cd " + folder.string() +
                          "; COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(word) +
                          "; _oscar_brew; echo \"${COMPREPLY[*]}\""});
    EXPECT_TRUE(Exits(exit, 0));
    return exit.out;
  };
  EXPECT_EQ(complete("oscar-brew ke", 1), "kettle\n");
  EXPECT_EQ(complete("oscar-brew --mi", 1), "--milk\n");
  EXPECT_EQ(complete("oscar-brew bean --method p", 3), "press\n");
  EXPECT_EQ(complete("oscar-brew bean --no-pa", 2), "--no-paper-filter\n");
  EXPECT_EQ(complete("oscar-brew kettle --lo", 2), "--loud\n");
  EXPECT_EQ(complete("oscar-brew kettle --mi", 2), "\n");
  EXPECT_EQ(complete("oscar-brew bean --jars comp", 3), "completion\n");
}

TEST_F(ProgramDocsTest, TextInThemIsQuoted) {
  const std::string man = ManPage(docs_);
  EXPECT_NE(man.find("\nIt's \\-loud\\-; very\n"), std::string::npos) << man;
  EXPECT_NE(man.find("[a]: 'b' \\e $(c)"), std::string::npos) << man;
}

TEST(Clauses, EndAtSemicolonsOutsideParentheses) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(Clauses("what it is; and more"), (Texts{"what it is", "and more"}));
  EXPECT_EQ(Clauses("of (one; two) kinds; and more"), (Texts{"of (one; two) kinds", "and more"}));
  EXPECT_EQ(Clauses("all of it"), Texts{"all of it"});
}

TEST_F(ProgramDocsTest, AProgramPrintsItsOwn) {
  BrewOptions options;
  const auto never = [](CommandContext&) -> CommandResult {
    ADD_FAILURE() << "ran";
    return {};
  };
  const auto run = [&](const std::vector<std::string>& arguments) {
    return RunCaptured("oscar-brew", arguments,
                       [&](int argc, const char* const* argv, const Console& console) {
                         return RunCommand(argc, argv, BrewTable(&options), never, console);
                       });
  };
  EXPECT_TRUE(run({"--print-man"}).out.starts_with(".TH OSCAR\\-BREW 1"));
  EXPECT_NE(run({"--print-man"}).out.find("\\-\\-dry\\-run"), std::string::npos);
  EXPECT_TRUE(run({"--print-completion", "bash"}).out.starts_with("# bash completion"));
  for (const char* shell : {"zsh", "fish", "tcsh"})
    EXPECT_EQ(run({"--print-completion", shell}).exit_code, 2);
}

}  // namespace
}  // namespace oscar
