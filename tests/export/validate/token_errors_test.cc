// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/token_errors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "export/report/llama_perplexity.h"

namespace oscar {
namespace {

// Returns tokens 1 to n of a text of n + 1 tokens.
std::vector<ScoredToken> Tokens(int64_t n) {
  std::vector<ScoredToken> tokens;
  for (int64_t i = 1; i <= n; ++i) tokens.push_back({.position = i, .length = n + 1});
  return tokens;
}

TEST(TextReport, QuantilesAreThoseOfTheTokens) {
  constexpr int kTokens = 1001;  // KL 0, 0.001, ..., 1, shuffled: quantile p is p
  TokenErrors arm{.nll = std::vector<float>(kTokens, 1),
                  .kl = {},
                  .agrees = std::vector<uint8_t>(kTokens, 1),
                  .is_top1 = {}};
  for (int i = 0; i < kTokens; ++i)
    arm.kl.push_back(static_cast<float>(i * 3 % kTokens) / (kTokens - 1));
  const Json text = TextReport(Tokens(kTokens), arm, arm, 100, 0);
  const Json& kl = text.at("token_kl");
  const std::pair<const char*, double> quantiles[] = {
      {"min", 0},    {"p0_1", 0.001},  {"p1", 0.01},  {"p5", 0.05}, {"p10", 0.1},
      {"p25", 0.25}, {"median", 0.5},  {"p75", 0.75}, {"p90", 0.9}, {"p95", 0.95},
      {"p99", 0.99}, {"p99_9", 0.999}, {"max", 1}};
  for (const auto& [name, value] : quantiles) EXPECT_NEAR(kl.at(name), value, 1e-7) << name;
  EXPECT_NEAR(kl.at("mean"), 0.5, 1e-7);
  // The numbers 0 to n - 1 have the variance (n^2 - 1) / 12.
  const double variance = (kTokens * kTokens - 1) / 12.0 / ((kTokens - 1) * (kTokens - 1.0));
  EXPECT_NEAR(kl.at("error"), std::sqrt(variance / (kTokens - 1)), 1e-7);
  EXPECT_EQ(text.at("perplexity_error"), 0);
  EXPECT_EQ(text.at("ppl_ratio_error"), 0);
  EXPECT_EQ(text.at("token_probability").at("rms"), 0);
  EXPECT_EQ(text.at("token_probability").at("rms_error"), 0);
}

// The expected text was computed in Python from six tokens, by the formulas of llama.cpp's
// perplexity.cpp (sums, sums of squares, sums of products).
TEST(TextReport, GivesTheLinesOfLlamaPerplexity) {
  const TokenErrors base{.nll = {0.4375F, 1.125F, 1.25F, 1.75F, 0.375F, 2.5F},
                         .kl = std::vector<float>(6, 0),
                         .agrees = std::vector<uint8_t>(6, 1),
                         .is_top1 = {}};
  const TokenErrors arm{.nll = {0.5F, 1.0F, 1.5F, 2.0F, 0.25F, 3.0F},
                        .kl = {0.01F, 0.04F, 0.02F, 0.3F, 0, 0.13F},
                        .agrees = {1, 1, 1, 0, 1, 0},
                        .is_top1 = {}};
  const auto report_of = [&](const TokenErrors& errors, const char* name) -> Json {
    return {{"name", name}, {"text", TextReport(Tokens(6), errors, base, 100, 0)}};
  };
  Json report = {{"model", {{"id", "a/b"}}},
                 {"validation",
                  {{"data", {{"name", "six\ntokens"}}},
                   {"arms", Json::array({report_of(base, "bf16"), report_of(arm, "int2")})}}}};
  EXPECT_EQ(LlamaPerplexityText(report, report["validation"]["arms"][1], "text"),
            "a/b int2: six tokens, 6 tokens scored\n"
            "\n"
            "====== Perplexity statistics ======\n"
            "Mean PPL(Q)                   :   3.955077 ±   1.649596\n"
            "Mean PPL(base)                :   3.454174 ±   1.137477\n"
            "Cor(ln(PPL(Q)), ln(PPL(base))):  99.16%\n"
            "Mean ln(PPL(Q)/PPL(base))     :   0.135417 ±   0.100022\n"
            "Mean PPL(Q)/PPL(base)         :   1.145014 ±   0.114526\n"
            "Mean PPL(Q)-PPL(base)         :   0.500903 ±   0.541921\n"
            "\n"
            "====== KL divergence statistics ======\n"
            "Mean    KLD:   0.083333 ±   0.047376\n"
            "Maximum KLD:   0.300000\n"
            "99.9%   KLD:   0.299150\n"
            "99.0%   KLD:   0.291500\n"
            "95.0%   KLD:   0.257500\n"
            "90.0%   KLD:   0.215000\n"
            "Median  KLD:   0.030000\n"
            "10.0%   KLD:   0.005000\n"
            " 5.0%   KLD:   0.002500\n"
            " 1.0%   KLD:   0.000500\n"
            " 0.1%   KLD:   0.000050\n"
            "Minimum KLD:   0.000000\n"
            "\n"
            "====== Token probability statistics ======\n"
            "Mean    Δp: -0.642 ± 2.454 %\n"
            "Maximum Δp:  9.151%\n"
            "99.9%   Δp:  9.127%\n"
            "99.0%   Δp:  8.910%\n"
            "95.0%   Δp:  7.944%\n"
            "90.0%   Δp:  6.737%\n"
            "75.0%   Δp:  2.435%\n"
            "Median  Δp: -3.537%\n"
            "25.0%   Δp: -3.895%\n"
            "10.0%   Δp: -5.125%\n"
            " 5.0%   Δp: -5.731%\n"
            " 1.0%   Δp: -6.216%\n"
            " 0.1%   Δp: -6.325%\n"
            "Minimum Δp: -6.337%\n"
            "RMS Δp    :  5.524 ± 1.038 %\n"
            "Same top p: 66.667 ± 21.082 %\n");
}

}  // namespace
}  // namespace oscar
