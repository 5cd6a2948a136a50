// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-calibrate --dry-run on the config.json of large releases alone: layers, geometry and what
// would be read, within seconds. The bytes are expected from the configuration's word on
// formats, so they are held to what the releases take, not to files.
#include <gtest/gtest.h>

#include <chrono>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

struct Release {
  const char* name;
  std::vector<std::string> lines;
  double gigabytes;  // of its weights, but for embedding, head, prediction layers
};

TEST(ConfigPlan, ConfigurationAloneIsEnough) {
  const Release releases[] = {
      {"GLM-4.7",
       {"92 x 96 query heads, 8 KV heads, head_dim 128",
        "89 x 160 experts, 8 a token, a shared one"},
       695},
      {"Qwen3-235B-A22B",
       {"94 x 64 query heads, 4 KV heads, head_dim 128", "94 x 128 experts, 8 a token"},
       463},
      {"DeepSeek-V3",
       {"61 x 128 query heads over a latent of 512 and 64 with position",
        "58 x 256 experts, 8 a token, a shared one"},
       658},
      {"gpt-oss-120b",
       {"18 x 64 query heads, 8 KV heads, head_dim 64, window 128",
        "18 x 64 query heads, 8 KV heads, head_dim 64\n", "36 x 128 experts, 4 a token"},
       63},
      {"Gemma-4-12B",
       {"40 x 16 query heads, 8 KV heads, head_dim 256, window 1024",
        "8 x 16 query heads, 1 KV heads, head_dim 512"},
       21.6}};
  for (const Release& release : releases) {
    const auto started = std::chrono::steady_clock::now();
    const ProgramExit result =
        RunProgram(OSCAR_CALIBRATE, {TestData(std::string("configs/") + release.name).string(),
                                     "--no-auto", "--device", "cpu", "--dry-run"});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    EXPECT_EQ(result.code, 0) << release.name << ": " << result.err;
    EXPECT_LT(took.count(), 20) << release.name;
    for (const std::string& line : release.lines)
      EXPECT_NE(result.out.find(line), std::string::npos) << release.name << ": " << result.out;
    std::smatch found;
    ASSERT_TRUE(std::regex_search(result.out, found, std::regex("weights to read +([0-9.]+) GB")))
        << result.out;
    EXPECT_NEAR(std::stod(found[1]) / release.gigabytes, 1, 0.02) << release.name;
    EXPECT_TRUE(std::regex_search(result.out, std::regex("peak host memory +[0-9.]+ GB")));
  }
}

// Only a plan does without weights.
TEST(ConfigPlan, ARunNeedsWeights) {
  const ProgramExit result = RunProgram(
      OSCAR_CALIBRATE, {TestData("configs/GLM-4.7").string(), "--no-auto", "--device", "cpu"});
  EXPECT_EQ(result.code, 3);
  EXPECT_NE(result.err.find("no weights"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace oscar
