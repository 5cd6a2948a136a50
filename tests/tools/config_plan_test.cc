// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs oscar-calibrate --dry-run with nothing but the config.json of large releases. It must print
// layers, geometry and the bytes to read within seconds. The plan derives the bytes from the weight
// formats in the configuration; they are compared with the published sizes of the releases.
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
  double gigabytes;  // size of the weights without embedding, LM head and MTP layers
};

TEST(ConfigPlan, ConfigurationAloneIsEnough) {
  const Release releases[] = {
      {"GLM-4.7",
       {"92 x 96 query heads, 8 KV heads, head_dim 128",
        "89 x 160 experts, 8 per token, plus a shared one"},
       695},
      {"Qwen3-235B-A22B",
       {"94 x 64 query heads, 4 KV heads, head_dim 128", "94 x 128 experts, 8 per token"},
       463},
      {"DeepSeek-V3",
       {"61 x 128 query heads over a latent of 512 and 64 with position",
        "58 x 256 experts, 8 per token, plus a shared one"},
       658},
      {"gpt-oss-120b",
       {"18 x 64 query heads, 8 KV heads, head_dim 64, window 128",
        "18 x 64 query heads, 8 KV heads, head_dim 64\n", "36 x 128 experts, 4 per token"},
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

// Qwen3-235B has 94 layers of 128 experts, each 3 x 4096 x 1536 values in two bytes; the last
// layer's experts are not read. The rest (q and o of 4096 x 8192, k and v of 4096 x 512, the
// router) is read whole by each machine.
TEST(ConfigPlan, OfRanks) {
  const ProgramExit result = RunProgram(
      OSCAR_CALIBRATE, {TestData("configs/Qwen3-235B-A22B").string(), "--no-auto", "--device",
                        "cpu", "--dry-run", "--tokens", "30000", "--ranks", "8", "--nodes", "4"});
  ASSERT_EQ(result.code, 0) << result.err;
  const double experts = 93.0 * 128 * 3 * 4096 * 1536 * 2 / 1e9,
               others = 94.0 * 2 * 4096 * (2 * 8192 + 2 * 512 + 128) / 1e9;
  struct Row {
    int ranks, machines;
    int64_t tokens;
  };
  for (const Row& row : {Row{1, 1, 30000}, Row{2, 1, 16384}, Row{4, 2, 8192}, Row{8, 4, 4096}}) {
    std::smatch found;
    const std::regex line("\n +" + std::to_string(row.ranks) + " +" + std::to_string(row.machines) +
                          " +" + std::to_string(row.tokens) +
                          " +([0-9.]+) GB +([0-9.]+) ([GM])B +([0-9.]+) ([GM])B +[0-9.]+ GB "
                          ".* ([0-9]+) %");
    ASSERT_TRUE(std::regex_search(result.out, found, line)) << result.out;
    EXPECT_NEAR(std::stod(found[1]), others + experts / row.machines, 2);
    const double between = std::stod(found[2]), network = std::stod(found[4]);
    // Each token's float32 row travels to its eight experts and back, unless its own rank has them.
    const double travels = 94.0 * 30000 * 8 * 2 * 4096 * 4 * (row.ranks - 1) / row.ranks / 1e9;
    EXPECT_NEAR(between, travels, 0.06 * travels + 0.1);
    const double others_of_all = row.ranks - row.ranks / row.machines;
    EXPECT_NEAR(network, row.ranks == 1 ? 0 : between * others_of_all / (row.ranks - 1),
                0.01 * between);
    EXPECT_GE(std::stoi(found[6]), 50);
    EXPECT_LE(std::stoi(found[6]), 100);
  }
  const ProgramExit few =
      RunProgram(OSCAR_CALIBRATE, {TestData("configs/Qwen3-235B-A22B").string(), "--device", "cpu",
                                   "--dry-run", "--ranks", "2", "--nodes", "4"});
  EXPECT_TRUE(Exits(few, 2));
  EXPECT_NE(few.err.find("--nodes 4: every node needs at least one rank"), std::string::npos)
      << few.err;
}

// Only a dry run works without weights.
TEST(ConfigPlan, ARunNeedsWeights) {
  const ProgramExit result = RunProgram(
      OSCAR_CALIBRATE, {TestData("configs/GLM-4.7").string(), "--no-auto", "--device", "cpu"});
  EXPECT_TRUE(Exits(result, 3));
  EXPECT_NE(result.err.find("no weights"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace oscar
