// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/gate.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "export/report/verdict_text.h"
#include "linalg/base/error.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

Json Arm() {
  return {
      {"name", "oscar"},
      {"local", {{"kl", {{"mean", 0.04}, {"p99", 0.3}, {"max", 1.5}}}, {"output_rel_error", 0.1}}},
      {"end_to_end", {{"kl", {{"mean", 0.06}}}}},
      {"text",
       {{"perplexity", 2.5},
        {"ppl_ratio", 1.01},
        {"token_kl", {{"mean", 0.02}}},
        {"top1_agreement", 0.97}}},
      {"needle", {{"accuracy", 0.9}}},
      {"tool_call", {{"accuracy", 0.8}, {"token_kl", {{"mean", 0.07}}}}},
      {"reasoning", {{"tokens_until", 31.5}, {"token_kl", {{"mean", 0.03}}}}}};
}

bool Passes(const std::string& text) { return EvaluateGate(ParseGate(text), Arm()).passed; }

void ExpectUsageError(const std::string& text, const std::string& part) {
  EXPECT_TRUE(Says(ErrorOf<UsageError>([&] { ParseGate(text); }), part));
}

TEST(Gate, ParsesWhatTheIssueWrites) {
  const Gate gate = ParseGate(" kl <= 0.05, ppl_ratio<=1.02 ");
  EXPECT_EQ(gate.text, "kl<=0.05,ppl_ratio<=1.02");
  ASSERT_EQ(gate.checks.size(), 2u);
  EXPECT_EQ(gate.checks[1].metric, "ppl_ratio");
  EXPECT_EQ(gate.checks[1].op, "<=");
  EXPECT_EQ(gate.checks[1].limit, 1.02);
}

TEST(Gate, OperatorsAtTheLimit) {
  EXPECT_TRUE(Passes("kl<=0.04"));
  EXPECT_FALSE(Passes("kl<0.04"));
  EXPECT_TRUE(Passes("needle>=0.9"));
  EXPECT_FALSE(Passes("needle>0.9"));
  EXPECT_TRUE(Passes("kl<=4e-2,ppl_ratio<=1.02"));
  EXPECT_FALSE(Passes("kl<=0.05,ppl_ratio<=1.00"));  // one failed check fails the gate
  EXPECT_FALSE(Passes("kl<=-1"));
}

TEST(Gate, EveryMetricFindsItsNumber) {
  const std::vector<std::pair<std::string, double>> values = {{"kl", 0.04},
                                                              {"kl_p99", 0.3},
                                                              {"kl_max", 1.5},
                                                              {"output_rel_error", 0.1},
                                                              {"e2e_kl", 0.06},
                                                              {"perplexity", 2.5},
                                                              {"ppl_ratio", 1.01},
                                                              {"token_kl", 0.02},
                                                              {"top1_agreement", 0.97},
                                                              {"needle", 0.9},
                                                              {"tool_call", 0.8},
                                                              {"tool_call_kl", 0.07},
                                                              {"divergence", 31.5},
                                                              {"reasoning_kl", 0.03}};
  EXPECT_EQ(values.size(), GateMetrics().size());
  for (const auto& [metric, value] : values) {
    const Gate result = EvaluateGate(ParseGate(metric + "<=1e9"), Arm());
    EXPECT_EQ(result.checks[0].value, value) << metric;
  }
}

// Measuring tool calls does not imply that the other parts are measured.
TEST(Gate, WhatWillNotBeMeasuredIsRefused) {
  const Gate calls = ParseGate("tool_call>=0.9,kl<=1"), words = ParseGate("token_kl<=1");
  EXPECT_NO_THROW(CheckMeasured(calls, {.tool_calls = true}));
  EXPECT_THROW(CheckMeasured(calls, {.predictions = true, .recall = true}), UsageError);
  EXPECT_THROW(CheckMeasured(words, {.recall = true, .tool_calls = true}), UsageError);
  EXPECT_NO_THROW(CheckMeasured(words, {.predictions = true}));
}

TEST(Gate, UnmeasuredMetricFails) {
  Json arm = Arm();
  arm.erase("text");
  const Gate result = EvaluateGate(ParseGate("kl<=1,ppl_ratio<=100"), arm);
  EXPECT_FALSE(result.passed);
  EXPECT_TRUE(result.checks[0].passed);
  EXPECT_FALSE(result.checks[1].passed);
  EXPECT_FALSE(result.checks[1].value);
  EXPECT_NE(result.checks[1].reason->find("text.ppl_ratio"), std::string::npos);
}

TEST(Gate, WhatIsNotANumberIsAnError) {
  Json arm = Arm();
  arm["local"]["kl"]["mean"] = "0.01";
  EXPECT_THROW(EvaluateGate(ParseGate("kl<=1"), arm), InputError);
  arm["local"]["kl"] = 0.01;
  EXPECT_THROW(EvaluateGate(ParseGate("kl<=1"), arm), InputError);
  arm["local"]["kl"] = {{"mean", std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_THROW(EvaluateGate(ParseGate("kl<=1"), arm), InputError);
  EXPECT_THROW(EvaluateGate(ParseGate("kl<=1"), Json::object()), InputError);
}

TEST(Gate, ErrorsSayWhatWasMeant) {
  ExpectUsageError("ppl_ration<=1", "unknown metric \"ppl_ration\"; the nearest of");
  ExpectUsageError("kl_99<=1", ": kl_p99,");
  ExpectUsageError("KL<=1", "unknown metric");
  ExpectUsageError("kl==1", "operator \"==\"");
  ExpectUsageError("kl=<1", "operator \"=<\"");
  ExpectUsageError("kl 0.05", "expected a metric");
  ExpectUsageError("kl<=", "not a finite number");
  ExpectUsageError("kl<=nan", "not a finite number");
  ExpectUsageError("kl<=inf", "not a finite number");
  ExpectUsageError("kl<=0.05x", "not a finite number");
  ExpectUsageError("kl<=0.05,", "expected a metric");
  ExpectUsageError(",", "expected a metric");
  ExpectUsageError("<=1", "unknown metric \"\"");
  ExpectUsageError("  ", "empty");
}

// A published report is accepted only if its verdict follows from its numbers.
TEST(Gate, StoredVerdictIsRecomputed) {
  const Gate gate = ParseGate("kl<=0.05,needle>=0.8");
  Json validation = {{"arms", {Arm()}}, {"gate", EvaluateGate(gate, Arm())}};
  validation = ParseStrictJson(CanonicalJson(validation), "report.json");  // as read from a file
  EXPECT_TRUE(CheckStoredGate(validation, "report.json").passed);
  const std::vector<std::function<void(Json&)>> damages = {
      [](Json& v) { v.erase("gate"); },
      [](Json& v) { v["arms"][0]["local"]["kl"]["mean"] = 0.06; },
      [](Json& v) { v["arms"][0].erase("needle"); },
      [](Json& v) { v["gate"]["passed"] = false; },
      [](Json& v) { v["gate"]["checks"][0]["limit"] = 0.06; },
      [](Json& v) { v["gate"]["text"] = "kl<=0.06,needle>=0.8"; },
      [](Json& v) { v["gate"]["text"] = "nonsense"; },
      [](Json& v) { v["gate"]["arm"] = "another"; },
      [](Json& v) { v["arms"] = 3; },
      [](Json& v) {
        v["arms"] = {1, 2};
      },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    Json bad = validation;
    damages[i](bad);
    EXPECT_THROW(CheckStoredGate(bad, "report.json"), InputError) << i;
  }
}

// If the text is foreign to the model, the gate uses text that the model wrote. A stored gate is
// checked in the same way.
TEST(Gate, RestsOnTheTextOfTheVerdict) {
  Json arm = Arm();
  arm["own_words"] = arm.at("text");
  arm["text"]["ppl_ratio"] = 1.5;
  arm["own_words"]["ppl_ratio"] = 1.01;
  Json validation = {{"arms", {arm}}};
  const Gate gate = ParseGate("ppl_ratio<=1.02");
  EXPECT_FALSE(EvaluateGate(gate, ArmOfVerdict(validation, arm)).passed);
  validation["verdict_text"] = {{"member", "own_words"}};
  validation["gate"] = EvaluateGate(gate, ArmOfVerdict(validation, arm));
  EXPECT_EQ(validation["gate"]["passed"], true);
  EXPECT_TRUE(CheckStoredGate(validation, "report.json").passed);
  validation.erase("verdict_text");
  EXPECT_THROW(CheckStoredGate(validation, "report.json"), InputError);
}

TEST(Gate, TheTextOfTheVerdict) {
  const auto exact = [](double text, double own) {
    return Json{{"text", {{"perplexity", text}}}, {"own_words", {{"perplexity", own}}}};
  };
  EXPECT_EQ(VerdictText(exact(31, 10), true).at("member"), "own_words");
  EXPECT_EQ(VerdictText(exact(29, 10), true).at("member"), "text");
  EXPECT_EQ(VerdictText(exact(31, 10), false).at("member"), "text");
  EXPECT_TRUE(VerdictText({{"text", {{"perplexity", 31}}}}, true).is_null());
}

}  // namespace
}  // namespace oscar
