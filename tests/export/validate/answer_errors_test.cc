// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/answer_errors.h"

#include <gtest/gtest.h>

namespace oscar {
namespace {

// Returns three calls of ten tokens. Each has an argument of two tokens and an argument of one.
std::vector<NeedleSample> Calls() {
  std::vector<NeedleSample> samples(3);
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].task = i < 2 ? "copied_argument" : "json_edit";
    samples[i].length = 10;
    samples[i].ids = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    samples[i].answers = {{.begin = 4, .end = 6, .depth = 0, .value = "a"},
                          {.begin = 8, .end = 9, .depth = 0, .value = "b"}};
  }
  return samples;
}

TokenErrors Errors(std::vector<uint8_t> right, std::vector<float> kl) {
  return {.nll = std::vector<float>(right.size(), 1),
          .kl = std::move(kl),
          .agrees = right,
          .is_top1 = right};
}

TEST(AnswerErrors, ScoreTheTokensOfAnswersAndNoOthers) {
  const std::vector<ScoredToken> tokens = AnswerTokens(Calls(), 100);
  ASSERT_EQ(tokens.size(), 9U);
  EXPECT_EQ(tokens[0].hidden_row, 103);
  EXPECT_EQ(tokens[1].id, 5);
  EXPECT_EQ(tokens[2].position, 8);
  EXPECT_EQ(tokens[3].hidden_row, 113);
  EXPECT_EQ(tokens[8].sequence, 2);
}

TEST(AnswerErrors, AnArgumentIsExactWithAllItsTokensAndACallWithAllItsArguments) {
  const std::vector<NeedleSample> calls = Calls();
  const std::vector<ScoredToken> tokens = AnswerTokens(calls, 0);
  const TokenErrors exact = Errors(std::vector<uint8_t>(9, 1), std::vector<float>(9, 0)),
                    arm = Errors({1, 0, 1, 1, 1, 1, 0, 1, 0}, {1, 2, 3, 0, 0, 0, 5, 5, 2});
  const Recall counts(calls, AnswerScores(calls, tokens, exact));
  const Json json = ToolCallReport(calls, tokens, arm, counts, 100, 0);
  EXPECT_EQ(json.at("samples"), 3);
  EXPECT_EQ(json.at("tokens"), 9);
  EXPECT_DOUBLE_EQ(json.at("accuracy").get<double>(), 3.0 / 6);
  EXPECT_DOUBLE_EQ(json.at("exact_calls").get<double>(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(json.at("token_kl").at("mean").get<double>(), 2);
  EXPECT_EQ(json.at("token_kl").at("max"), 5);
  EXPECT_EQ(json.at("by_task"), Json::parse(R"([
    {"task":"copied_argument","length":10,"samples":2,"tokens":6,"token_kl":1.0,"accuracy":0.75,
     "exact_calls":0.5},
    {"task":"json_edit","length":10,"samples":1,"tokens":3,"token_kl":4.0,"accuracy":0.0,
     "exact_calls":0.0}])"));
  // The mean KL is 2, 0 and 4 in the three calls.
  EXPECT_GE(json.at("token_kl").at("interval").at(0), 0);
  EXPECT_LE(json.at("token_kl").at("interval").at(1), 4);
  EXPECT_LT(json.at("accuracy_interval").at(0), json.at("accuracy_interval").at(1));
}

TEST(AnswerErrors, TasksBeyondTheModelHaveAKlAlone) {
  const std::vector<NeedleSample> calls = Calls();
  const std::vector<ScoredToken> tokens = AnswerTokens(calls, 0);
  const TokenErrors arm = Errors(std::vector<uint8_t>(9, 1), {1, 2, 3, 0, 0, 0, 5, 5, 2});
  const auto report = [&](const std::vector<uint8_t>& right) {
    const TokenErrors exact = Errors(right, std::vector<float>(9, 0));
    return ToolCallReport(calls, tokens, arm, Recall(calls, AnswerScores(calls, tokens, exact)), 50,
                          0);
  };
  const Json some = report({1, 1, 1, 1, 1, 1, 0, 1, 1}), none = report({1, 0, 1, 1, 0, 1, 0, 1, 1});
  EXPECT_EQ(some.at("accuracy"), 1);
  EXPECT_FALSE(none.contains("accuracy"));
  EXPECT_EQ(some.at("token_kl"), none.at("token_kl"));
}

}  // namespace
}  // namespace oscar
