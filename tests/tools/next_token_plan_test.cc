// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs oscar-calibrate with a bit budget that is shared out by its effect on the next token,
// reproducibly. Without --bits, the budget is what OSCAR's 2-bit codes store.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "capture/files/strict_json.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"
#include "tests/tools/small_runs.h"

namespace oscar {
namespace {

ProgramExit CalibrateTiny(const std::filesystem::path& artifact, const ProgramStrings& options) {
  return RunProgram(OSCAR_CALIBRATE, TinyRun(artifact) + options);
}

// Calibrates for `any` and returns the text of report.json.
std::string Calibrate(const std::string& name, const ProgramStrings& options = {}) {
  const std::filesystem::path path = TestScratch("next_token_" + name) / "artifact";
  EXPECT_TRUE(Exits(CalibrateTiny(path, options + ProgramStrings{"--for", "any"}), 0));
  return ReadText(path / "report.json");
}

TEST(NextTokenPlan, BitsGoWhereTheNextTokenNeedsThem) {
  const std::string text = Calibrate("once", {"--effort", "normal"});
  EXPECT_EQ(text, Calibrate("twice", {"--effort", "normal"}));
  const Json report = Json::parse(text);
  const Json& serving = report.at("serving").at("auto");
  EXPECT_LE(serving.at("bits_stored"), 3.0 + 1e-9);  // 2 bits + 64 metadata bits / 64 values
  EXPECT_GT(serving.at("bits_stored"), 2.9);
  const Json& by = serving.at("bits_by");
  ASSERT_EQ(by.at("plans").size(), 3u);
  EXPECT_GT(by.at("tokens"), 100);
  EXPECT_GT(by.at("tokens_priced"), by.at("tokens"));  // priced on the fitted text, which is longer
  EXPECT_FALSE(by.at("sensitive").empty());
  const auto cost = [](const Json& plan) {
    return plan.at("token_kl").get<double>() + plan.at("token_kl_p99").get<double>() / 100;
  };
  const auto best = std::ranges::min_element(by.at("plans"), {}, cost);
  EXPECT_EQ(best->at("by"), by.at("price"));
  EXPECT_GT(cost(by.at("plans").at(0)), 0);
  for (const Json& layer : report.at("layers")) {
    for (const char* options : {"k_options", "v_options"}) {
      const Json& of_side = layer.at("auto").at(options);
      EXPECT_GT(of_side.front().at("next_token_kl").at(0),
                of_side.back().at("next_token_kl").at(0));
    }
  }

  // Requesting this plan with --bits-by gives the same plan.
  const Json asked = Json::parse(Calibrate("asked", {"--bits-by", "next_token"}));
  const Json& plans = asked.at("serving").at("auto").at("bits_by").at("plans");
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans.at(0), by.at("plans").at(0));
}

TEST(NextTokenPlan, OnACpuTheDefaultSharesBitsOutWithoutPasses) {
  const std::filesystem::path path = TestScratch("next_token_default") / "artifact";
  ASSERT_TRUE(Exits(CalibrateTiny(path, {}), 0));
  const Json report = Json::parse(ReadText(path / "report.json"));
  const Json& automatic = report.at("calibration").at("auto");
  EXPECT_EQ(automatic.at("for"), "any");
  EXPECT_EQ(automatic.at("effort"), "quick");
  EXPECT_EQ(report.at("calibration").at("configuration").at("effort"), "auto");
  EXPECT_FALSE(report.at("serving").at("auto").contains("bits_by"));
  EXPECT_GT(report.at("serving").at("auto").at("bits_spent"), 2);
}

TEST(NextTokenPlan, BitsMayBeTheSameEverywhere) {
  const Json report = Json::parse(Calibrate("uniform", {"--bits-by", "uniform", "--bits", "3.25"}));
  EXPECT_FALSE(report.at("serving").at("auto").contains("bits_by"));
  for (const Json& layer : report.at("layers")) {
    EXPECT_EQ(layer.at("auto").at("k_bits"), 3);
    EXPECT_EQ(layer.at("auto").at("v_bits"), 3);
  }
}

TEST(NextTokenPlan, WhatIsNotMeasuredSharesOutNothing) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused = {
      {{"--for", "any", "--bits-by", "next_token", "--effort", "quick"}, "--effort quick"},
      {{"--for", "any", "--bits-by", "uniform", "--bits", "2"}, "all codes have 2 bits"},
      {{"--for", "sglang-oct", "--bits-by", "uniform"}, "--bits-by"}};
  for (const auto& [options, why] : refused) {
    const ProgramExit exit = CalibrateTiny(TestScratch("next_token_refused") / "artifact", options);
    EXPECT_TRUE(Exits(exit, 2));
    EXPECT_NE(exit.all().find(why), std::string::npos) << exit.all();
  }
}

}  // namespace
}  // namespace oscar
