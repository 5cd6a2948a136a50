// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/divergence.h"

#include <gtest/gtest.h>

namespace oscar {
namespace {

// Returns the scored tokens of two continuations: four tokens each, after a prefix of three.
std::vector<ScoredToken> Tokens() {
  return ScoredTokens({{1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 4, 5, 6, 7}}, 0, 3, 0);
}

Json Report(std::vector<uint8_t> agrees, std::vector<float> kl) {
  return ReasoningReport(
      Tokens(),
      {.nll = std::vector<float>(8, 1), .kl = std::move(kl), .agrees = agrees, .is_top1 = agrees},
      100, 0);
}

TEST(Divergence, IsTheFirstTokenThatIsChosenOtherwise) {
  // Tokens that agree again still count as after the divergence. The diverging token does not.
  const Json json = Report({1, 0, 1, 0, 1, 1, 1, 0}, {0, 8, 1, 3, 0, 0, 0, 4});
  EXPECT_EQ(json.at("samples"), 2);
  EXPECT_EQ(json.at("tokens"), 8);
  EXPECT_EQ(json.at("diverged"), 1);
  EXPECT_EQ(json.at("tokens_until"), 2);  // mean of 1 and 3
  EXPECT_EQ(json.at("tokens_until_interval"), Json({1.0, 3.0}));
  EXPECT_EQ(json.at("kl_after"), 2);  // mean of 1 and 3; no token follows the other divergence
  EXPECT_EQ(json.at("token_kl").at("mean"), 2);
}

TEST(Divergence, IsAtTheEndWhereThereIsNone) {
  const Json json = Report(std::vector<uint8_t>(8, 1), std::vector<float>(8, 0));
  EXPECT_EQ(json.at("diverged"), 0);
  EXPECT_EQ(json.at("tokens_until"), 4);
  EXPECT_FALSE(json.contains("kl_after"));
}

TEST(Divergence, BeginsAnewWithEverySample) {
  const Json json = Report({0, 1, 1, 1, 1, 1, 1, 1}, std::vector<float>(8, 1));
  EXPECT_EQ(json.at("diverged"), 0.5);
  EXPECT_EQ(json.at("tokens_until"), 2);  // mean of 0 and 4
}

}  // namespace
}  // namespace oscar
