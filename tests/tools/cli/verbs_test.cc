// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/verbs.h"

#include <gtest/gtest.h>

#include "tests/support/said.h"
#include "tests/tools/cli/sample_command.h"

namespace oscar {
namespace {

struct KitchenOptions {
  std::string dish, version;
  bool salt = false;
};

VerbCommand Kitchen(KitchenOptions* options) {
  OptionTable cook("kitchen cook", "Cooks a dish.");
  cook.Add(&options->dish, {.name = "dish", .help = "What", .positional = true, .required = true});
  cook.Add(&options->salt, {.name = "salt", .help = "Add salt"});
  cook.Add(&options->version, {.name = "version", .help = "Of the recipe", .unit = "x.y"});
  OptionTable wash("kitchen wash", "Washes up.");
  const auto run_cook = [options](CommandContext& context) -> CommandResult {
    if (options->dish == "soup" && !options->salt) throw Interrupted("interrupted: no salt");
    context.out << "cooked " << options->dish << " " << options->version << "\n";
    return {};
  };
  const auto run_wash = [](CommandContext& context) -> CommandResult {
    context.out << "washed\n";
    return {};
  };
  return {"kitchen", "Does the kitchen.", {{cook, run_cook}, {wash, run_wash}}, "Wear an apron."};
}

Outcome Cook(const std::vector<std::string>& arguments) {
  KitchenOptions options;
  return RunCaptured("bin/kitchen", arguments,
                     [&](int argc, const char* const* argv, const Console& console) {
                       return RunVerbs(argc, argv, Kitchen(&options), console);
                     });
}

TEST(Verbs, EachVerbHasItsOwnTable) {
  EXPECT_EQ(Cook({"wash"}).out, "washed\n");
  EXPECT_EQ(Cook({"cook", "rice", "--salt"}).out, "cooked rice \n");
  const Outcome o = Cook({"wash", "--salt"});
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_TRUE(Says(o.err, "kitchen wash has no flag --salt"));
  EXPECT_TRUE(Says(o.err, "see kitchen wash --help"));
}

TEST(Verbs, AVerbThatIsNotThereNamesTheNearest) {
  EXPECT_EQ(Cook({}).exit_code, 2);
  EXPECT_TRUE(Says(Cook({}).err, "one of cook, wash"));
  const Outcome o = Cook({"kook", "rice", "--log-format", "json"});
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_EQ(Json::parse(o.err).at("message"),
            "kitchen has no verb \"kook\"; the nearest is cook, wash; see kitchen --help");
}

TEST(Verbs, VersionIsTheProgramsUnlessTheVerbHasItsOwn) {
  EXPECT_EQ(Cook({"--version"}).out.substr(0, 8), "kitchen ");
  EXPECT_EQ(Cook({"cook", "rice", "--version", "1.2"}).out, "cooked rice 1.2\n");
  EXPECT_EQ(Cook({"wash", "--version"}).out.substr(0, 13), "kitchen wash ");
}

TEST(Verbs, TheCommandThatResumesKeepsTheVerb) {
  EXPECT_EQ(Cook({"cook", "soup"}).err,
            "error: interrupted: no salt; to resume: bin/kitchen cook soup\n");
}

}  // namespace
}  // namespace oscar
