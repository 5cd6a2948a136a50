// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The real oscar-calibrate with bits to share out, which are those of OSCAR's 2 bits where none are
// said: by the next token, and the same way twice.
#include <gtest/gtest.h>

#include <algorithm>

#include "capture/files/strict_json.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

// report.json's text.
std::string Calibrate(const std::string& name) {
  const std::filesystem::path path = TestScratch("next_token_" + name) / "artifact";
  const ProgramExit exit =
      RunProgram(OSCAR_CALIBRATE,
                 {TestData("tiny-qwen3/config.json").parent_path().string(), "-o", path.string(),
                  "--device", "cpu", "--for", "any", "--tokens", "3000", "--error-rows", "8"});
  EXPECT_EQ(exit.code, 0) << exit.all();
  return ReadText(path / "report.json");
}

TEST(NextTokenPlan, BitsGoWhereTheNextTokenNeedsThem) {
  const std::string text = Calibrate("once");
  EXPECT_EQ(text, Calibrate("twice"));
  const Json report = Json::parse(text);
  const Json& serving = report.at("serving").at("auto");
  EXPECT_LE(serving.at("bits_stored"), 3.0 + 1e-9);  // 2 + 64 / 64
  EXPECT_GT(serving.at("bits_stored"), 2.9);
  const Json& by = serving.at("bits_by");
  ASSERT_EQ(by.at("plans").size(), 3u);
  EXPECT_GT(by.at("tokens"), 100);
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
}

}  // namespace
}  // namespace oscar
