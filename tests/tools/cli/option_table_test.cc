// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the option table: every type can come from a flag or a file; flags override the file, which
// overrides defaults; errors name the key, the line and the nearest known name; a printed
// configuration reads back equal.
#include "tools/cli/option_table.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <fstream>

#include "linalg/base/error.h"
#include "tests/support/run_program.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"
#include "tests/tools/cli/sample_command.h"
#include "tools/cli/command_line.h"

namespace oscar {
namespace {

using Arguments = std::vector<std::string>;

// Resolves options as RunCommand does: first the file, then the flags.
BrewOptions Resolve(const std::string& yaml, const Arguments& arguments) {
  BrewOptions options;
  OptionTable table = BrewTable(&options);
  table.ApplyConfig(ParseConfig(yaml, "c.yaml"), "c.yaml");
  for (const GivenFlag& flag : SplitCommandLine(table, arguments))
    table.ApplyFlags(flag.name, flag.values);
  table.CheckRequired();
  table.CheckEffects();
  return options;
}

std::string Refused(const std::string& yaml, const Arguments& arguments) {
  return ErrorOf<UsageError>([&] { Resolve(yaml, arguments); });
}

void ExpectEveryType(const BrewOptions& o) {
  EXPECT_EQ(o.bean, "arabica");
  EXPECT_EQ(o.cups, 3);
  EXPECT_EQ(o.port, 8080);
  EXPECT_EQ(o.ratio, 1e-3);
  EXPECT_TRUE(o.milk);
  EXPECT_FALSE(o.filter);
  EXPECT_EQ(o.seed, -7);
  EXPECT_EQ(o.heat, 92.5);
  EXPECT_EQ(o.note, "a note, with a comma");
  EXPECT_EQ(o.spice, (Arguments{"clove, ground", "2"}));
  EXPECT_EQ(o.pours, (std::vector<int64_t>{10, 20, 30}));
  EXPECT_EQ(o.weights, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(o.grinder, "blade");
  EXPECT_EQ(o.method, BrewMethod::kPress);
  EXPECT_EQ(o.merge, (Arguments{"x", "y"}));
  EXPECT_EQ(o.output, "cup");
}

TEST(OptionTable, TakesEveryTypeFromFlagsAndFromTheFile) {
  const Arguments flags = Words(
      "arabica -n 3 --port=8080 --ratio 1e-3 --milk --no-paper-filter --seed -7 --heat 92.5 "
      "--note % --spice % --spice 2 --pours 10,20 --pours 30 --weights 0.5,1 --grinder blade "
      "--method press --merge x y -o cup",
      {"a note, with a comma", "clove, ground"});
  ExpectEveryType(Resolve("", flags));
  ExpectEveryType(Resolve(
      "bean: arabica\ncups: 3\nport: 8080\nratio: 1e-3\nmilk: true\npaper_filter: false\n"
      "seed: -7\nheat: 92.5\nnote: 'a note, with a comma'\nspice: ['clove, ground', \"2\"]\n"
      "pours: [10, 20, 30]\nweights: [0.5, 1]\ngrinder: blade\nmethod: press\nmerge: [x, y]\n"
      "output: cup\n",
      {}));
  EXPECT_TRUE(Resolve("bean: b\npours: []\n", {}).pours.empty());
  EXPECT_EQ(Resolve("bean: b\nnote: '12'\n", {}).note, "12");
}

// Paths lose trailing slashes, from flags and from files; other texts keep them.
TEST(OptionTable, PathsLoseTheSlashesAtTheirEnds) {
  EXPECT_EQ(Resolve("", {"x/", "--jars", "a/", "b//", "/"}).jars, (Arguments{"a", "b", "/"}));
  EXPECT_EQ(Resolve("jars: [a/]\n", {"x/"}).jars, Arguments{"a"});
  EXPECT_EQ(Resolve("", {"x/"}).bean, "x/");
}

TEST(OptionTable, FlagsOverrideTheFileWhichOverridesDefaults) {
  const BrewOptions o = Resolve("bean: robusta\ncups: 3\nmilk: true\npours: [1]\nseed: 4\n",
                                {"arabica", "--cups", "5", "--no-milk", "--pours", "2"});
  EXPECT_EQ(o.bean, "arabica");
  EXPECT_EQ(o.cups, 5);
  EXPECT_FALSE(o.milk);
  EXPECT_EQ(o.pours, std::vector<int64_t>{2});  // replaced, not appended to
  EXPECT_EQ(o.seed, 4);
  EXPECT_EQ(o.ratio, 0.0625);
  EXPECT_EQ(Resolve("", {"b", "--cups", "5", "--cups", "6"}).cups, 6);  // the last one counts
  EXPECT_EQ(Resolve("seed: null\n", {"b"}).seed, std::nullopt);
}

// Pairs of a configuration or command line and a part of the expected error.
TEST(OptionTable, NamesTheOptionThatIsWrong) {
  const std::pair<const char*, const char*> files[] = {
      {"bean: x\ncpus: 3\n",
       ":2: cpus: oscar-brew has no such key; the nearest is cups, pours, jars"},
      {"paper-filter: true\n", "the nearest is paper_filter, "},
      {"grinder: bald\n", ":1: grinder: found \"bald\", expected one of burr, blade"},
      {"bean: x\n\ncups: many\n", ":3: cups: found \"many\", expected a whole number of cups"},
      {"cups: '3'\n", "cups: found the quoted text \"3\""},
      {"cups: 3.0\n", "cups: found \"3.0\""},
      {"cups: [3]\n", "cups: found a list"},
      {"cups:\n", "cups: found nothing"},
      {"cups: 0\n", "cups: found 0, expected at least 1"},
      {"port: 65536\n", "port: found \"65536\""},
      {"port: -1\n", "port: found \"-1\""},
      {"milk: yes\n", "milk: found \"yes\", expected true or false"},
      {"ratio: .nan\n", "ratio: found \".nan\""},
      {"ratio: inf\n", "ratio: found \"inf\""},
      {"ratio: 1e999\n", "ratio: found \"1e999\""},
      {"pours:\n", "pours: found nothing, expected a list"},
      {"pours: [1, x]\n", "pours: found \"x\", expected a list"},
      {"pours: [1, -1]\n", "pours: found -1, expected at least 0"},
      {"pours: [1, 2, 3, 4]\n", "pours: expected at most 3 pours"},
      {"note: \"a\\0b\"\n", "note: found \"a\\x00b\""}};
  for (const auto& [yaml, why] : files) EXPECT_TRUE(Says(Refused(yaml, {}), why));
  const std::pair<const char*, const char*> lines[] = {
      {"x --cpus 3", "oscar-brew has no flag --cpus; the nearest is --cups, --pours, --jars"},
      {"x --paper_filter=false", "the nearest is --paper-filter, "},
      {"x --method pres", "--method: found \"pres\", expected one of drip, press"},
      {"x --cups 3x", "--cups: found \"3x\""},
      {"x --cups 13", "--cups: found 13, expected at most 12"},
      {"x --cups 99999999999999999999", "--cups: found \"99999999999999999999\""},
      {"x --milk=perhaps", "--milk: found \"perhaps\""}};
  for (const auto& [line, why] : lines) EXPECT_TRUE(Says(Refused("", Words(line)), why));
}

// Flags and files split lists by the same rule, for values of every type.
TEST(OptionTable, ListsTakeCommasAndSpaces) {
  const Arguments xyz = {"x", "y", "z"};
  const std::vector<Arguments> lines = {{"b", "--merge", "x", "y", "z"},
                                        {"b", "--merge", "x,y", "z"},
                                        {"b", "--merge", "x, y z"},
                                        {"b", "--merge", "x", "--merge=y,z"}};
  for (const Arguments& line : lines) EXPECT_EQ(Resolve("", line).merge, xyz);
  for (const char* yaml : {"merge: x, y z\n", "merge: [x, y, z]\n", "merge: [x y, z]\n"})
    EXPECT_EQ(Resolve(std::string("bean: b\n") + yaml, {}).merge, xyz) << yaml;
  const std::vector<int64_t> pours = {10, 20, 30};
  EXPECT_EQ(Resolve("", {"b", "--pours", "10", "20,30"}).pours, pours);
  EXPECT_EQ(Resolve("bean: b\npours: 10 20, 30\n", {}).pours, pours);
  EXPECT_EQ(Resolve("bean: b\nmerge: ['x, y', z]\n", {}).merge, (Arguments{"x, y", "z"}));
}

TEST(OptionTable, ACommaInTheNameOfAFileThatExistsCutsNothing) {
  const auto folder = TestScratch("lists");
  const std::string odd = (folder / "a, b.txt").string(), plain = (folder / "c").string();
  std::ofstream(odd) << "x";
  std::ofstream(plain) << "x";
  EXPECT_EQ(Resolve("", {"b", "--jars", odd, plain}).jars, (Arguments{odd, plain}));
  EXPECT_EQ(Resolve("", {"b", "--jars", plain + ",missing"}).jars, (Arguments{plain, "missing"}));
  EXPECT_EQ(Resolve("", {"b", "--jars", "no, such"}).jars, Arguments{"no, such"});
}

TEST(OptionTable, AFlagThatWouldDoNothingIsRefused) {
  EXPECT_EQ(Refused("", {"b", "--heat", "90"}), "--heat has no effect without --method press");
  EXPECT_EQ(Refused("", {"b", "--taste", "0", "--no-paper-filter"}),
            "--taste has no effect with --no-paper-filter");
  EXPECT_EQ(Refused("", {"b", "--jars", "j", "--merge", "x"}),
            "--jars has no effect with --merge: the earlier brews have their beans");
  EXPECT_EQ(Refused("", {"b", "--port", "8080", "--merge", "x", "y"}), "");
  EXPECT_EQ(Refused("", {"b", "--port", "8080", "--merge", "x", "y", "z"}),
            "--port has no effect with --merge: they are too many");
  EXPECT_EQ(Refused("", {"b", "--weights", "1"}), "--weights has no effect without --spice");
  EXPECT_EQ(Refused("", {"b", "--weights", "1", "--spice", "x", "--heat", "90", "--method", "press",
                         "--taste", "1"}),
            "");
  // A printed configuration has every key, so only a value that differs from its default counts as
  // given.
  EXPECT_EQ(Refused("bean: b\ntaste: 0\npaper_filter: false\n", {}), "");
  EXPECT_EQ(Refused("bean: b\ntaste: 1\npaper_filter: false\n", {}),
            "--taste has no effect with --no-paper-filter");
  // A flag may switch off a feature whose details are in the file, but not vice versa.
  EXPECT_EQ(Refused("bean: b\ntaste: 1\n", {"--no-paper-filter"}), "");
  EXPECT_EQ(Refused("bean: b\npaper_filter: false\n", {"--taste", "1"}),
            "--taste has no effect with --no-paper-filter");
}

TEST(OptionTable, APositionalMayBeGivenAsAFlag) {
  EXPECT_EQ(Resolve("", {"--bean", "arabica", "-n", "3"}).bean, "arabica");
  EXPECT_EQ(Refused("", {"--bean", "arabica", "robusta"}), "unexpected argument \"robusta\"");
}

TEST(OptionTable, RefusesArgumentsTooFewOrTooMany) {
  EXPECT_EQ(Refused("", {}),
            "BEAN is missing: The bean to brew; give it on the command line or as 'bean:' in the "
            "configuration file");
  EXPECT_EQ(Refused("", {"x", "y"}), "unexpected argument \"y\"");
  EXPECT_NE(Refused("", {"x", "--cups"}), "");
}

TEST(OptionTable, StoresOnlyWhatDecidesTheResult) {
  BrewOptions options;
  options.cups = 7;
  options.output = "elsewhere";
  const Json stored = BrewTable(&options).Stored();
  EXPECT_EQ(stored.at("cups"), 7);
  EXPECT_EQ(stored.at("method"), "drip");
  EXPECT_TRUE(stored.at("seed").is_null());
  EXPECT_FALSE(stored.contains("output"));
  EXPECT_FALSE(stored.contains("restart"));
}

TEST(OptionTable, PrintedConfigurationReadsBackEqual) {
  EXPECT_TRUE(rc::check([] {
    BrewOptions first;
    const auto utf8 = [] {
      return *rc::gen::container<std::string>(
          rc::gen::oneOf(rc::gen::inRange<char>(1, 127),
                         rc::gen::elementOf(std::string("#:-?[]{},&*!|>'\"%@` \n\t~"))));
    };
    first.bean = utf8();
    first.note =
        *rc::gen::arbitrary<bool>() ? std::optional<std::string>(utf8() + "é漢") : std::nullopt;
    first.cups = *rc::gen::inRange<int64_t>(1, 13);
    first.ratio = std::abs(*rc::gen::arbitrary<double>());
    first.milk = *rc::gen::arbitrary<bool>();
    first.filter = *rc::gen::arbitrary<bool>();
    first.seed = *rc::gen::arbitrary<int64_t>();
    first.method = *rc::gen::element(BrewMethod::kDrip, BrewMethod::kPress);
    first.spice = {utf8(), "null", "true", "1", utf8()};
    first.pours =
        *rc::gen::container<std::vector<int64_t>>(2, rc::gen::inRange<int64_t>(0, INT64_MAX));
    first.weights = {*rc::gen::arbitrary<double>(), 1e300, -0.0, 5e-324};
    if (!std::isfinite(first.ratio) || !std::isfinite(first.weights[0])) return;

    OptionTable first_table = BrewTable(&first);
    BrewOptions second;
    OptionTable second_table = BrewTable(&second);
    second_table.ApplyConfig(ParseConfig(first_table.ToYaml(), "printed"), "printed");
    RC_ASSERT(second_table.ToYaml() == first_table.ToYaml());
    RC_ASSERT(second_table.Stored() == first_table.Stored());
    RC_ASSERT(second.spice == first.spice);
    RC_ASSERT(second.note == first.note);
    RC_ASSERT(second.ratio == first.ratio);
  }));
}

TEST(OptionTable, HelpShowsEveryOptionWithin80Columns) {
  BrewOptions options;
  const OptionTable table = BrewTable(&options);
  const std::string help = HelpText(table, 80, /*all=*/true);
  for (const Option& option : table.options()) EXPECT_TRUE(Says(help, option.flag()));
  EXPECT_TRUE(Says(help, "(default: 2)"));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_FALSE(Says(HelpText(table, 80, /*all=*/false), "--grinder"));  // not a main option
}

TEST(OptionTable, ADefaultIsShownAsWhatItMeans) {
  int64_t rest = -1, sugar = 0;
  std::string cup;
  OptionTable table("oscar-brew", "Brews");
  table.Add(&rest, {.name = "rest", .help = "How long; auto: until cool; then drink", .min = -1});
  table.Add(&sugar, {.name = "sugar", .help = "How much; 0: none", .min = 0});
  table.Add(&cup, {.name = "cup", .help = "Which; empty: (any; clean) one"});
  const std::string help = HelpText(table, 80, /*all=*/true);
  for (const char* text : {"--rest N|auto", "How long; then drink (default: until cool)\n",
                           "How much (default: none)\n", "Which (default: (any; clean) one)\n"})
    EXPECT_TRUE(Says(help, text));
  EXPECT_TRUE(Says(table.ToYaml(), "\nrest: auto\n"));
  EXPECT_FALSE(Says(table.ToYaml(), "-1"));
  table.ApplyFlags("rest", {"3"});
  EXPECT_EQ(rest, 3);
  table.ApplyConfig(ParseConfig("rest: auto\n", "c"), "c");
  EXPECT_EQ(rest, -1);
  table.ApplyFlags("rest", {"4"});
  table.ApplyFlags("rest", {"auto"});
  EXPECT_EQ(rest, -1);
  EXPECT_THROW(table.ApplyFlags("rest", {"-2"}), UsageError);
  EXPECT_THROW(table.ApplyFlags("sugar", {"auto"}), UsageError);
}

TEST(OptionTable, ResumeCommandRepeatsTheLineButNotARestart) {
  BrewOptions options;
  OptionTable table = BrewTable(&options);
  EXPECT_EQ(
      ResumeCommand(table, "bin/oscar-brew", {"a bean", "--restart", "--note", "it's", "-o", ""}),
      "bin/oscar-brew 'a bean' --note 'it'\\''s' -o ''");
  table.ApplyConfig(ParseConfig("restart: true\n", "c"), "c");
  EXPECT_EQ(ResumeCommand(table, "bin/oscar-brew", {"x", "--config", "c"}),
            "bin/oscar-brew x --config c --no-restart");
  EXPECT_EQ(ResumeCommand(table, "bin/oscar-brew",
                          {"x", "--taste", "3", "-n", "2", "--taste=4", "--restart=true"}),
            "bin/oscar-brew x -n 2 --no-restart");
  table.ApplyConfig(ParseConfig("taste: 3\n", "c"), "c");
  EXPECT_EQ(ResumeCommand(table, "bin/oscar-brew", {"x"}),
            "bin/oscar-brew x --no-restart --taste 0");
}

}  // namespace
}  // namespace oscar
