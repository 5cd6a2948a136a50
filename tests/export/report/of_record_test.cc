// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the conditions under which a validation is recorded in an artifact.
#include "export/report/of_record.h"

#include <gtest/gtest.h>

#include "linalg/base/error.h"
#include "tests/export/report/sample_report.h"

namespace oscar {
namespace {

Json Report() {
  return {{"serving", {{"sink_tokens", 16}, {"recent_tokens", 128}, {"quant_group_size", 32}}},
          {"layers", {{{"sides", {{"k", {{"num_rotations", 2}}}, {"k_shared", {}}}}}}}};
}

ValidationFacts Facts() {
  return {.source = "model",
          .headline_arm = OwnArms(Report()).front(),
          .sink_tokens = 16,
          .recent_tokens = 128,
          .quant_group_size = 32,
          .scored_tokens = 2048,
          .longest_context = 512};
}

TEST(OfRecord, TheArtifactsOwnChoiceAsItIsServed) {
  EXPECT_TRUE(WhyNotOfRecord(Facts(), Report(), "x").empty());
}

TEST(OfRecord, AnImportedPairHasOneRotationForAllHeads) {
  Json report = Report();
  EXPECT_EQ(OwnArms(report).front(), "oscar_per_head+clip+windows");
  report["layers"][0]["sides"] = {{"k", {{"num_rotations", 1}}}};
  EXPECT_EQ(OwnArms(report).front(), "oscar_shared+clip+windows");
}

// Each of these facts alone makes the validation a comparison, and the reason names the fact.
TEST(OfRecord, EverythingElseIsAComparison) {
  const std::pair<void (*)(ValidationFacts&), const char*> cases[] = {
      {[](ValidationFacts& f) { f.headline_arm = "kivi2"; }, "its headline is kivi2"},
      {[](ValidationFacts& f) { f.source = "dump"; }, "on a dump"},
      {[](ValidationFacts& f) { f.predictions = false; }, "only attention"},
      {[](ValidationFacts& f) { f.own_model = false; }, "a model other than"},
      {[](ValidationFacts& f) { f.sink_tokens = 4; }, "keeps 4 first and 128"},
      {[](ValidationFacts& f) { f.recent_tokens = 256; }, "keeps 16 first and 256"},
      {[](ValidationFacts& f) { f.quant_group_size = 0; }, "groups have 0"},
      {[](ValidationFacts& f) { f.others_v = 0.5; }, "clips other methods at 0.96 and 0.5"},
      {[](ValidationFacts& f) { f.cache_dtype = "f32"; }, "not rounded to bf16"},
      {[](ValidationFacts& f) { f.scored_tokens = 1023; }, "scores 1023 tokens"},
      {[](ValidationFacts& f) { f.longest_context = 144; }, "nothing is quantized"}};
  for (const auto& [edit, reason] : cases) {
    ValidationFacts facts = Facts();
    edit(facts);
    const std::vector<std::string> reasons = WhyNotOfRecord(facts, Report(), "x");
    ASSERT_EQ(reasons.size(), 1u) << reason;
    EXPECT_NE(reasons[0].find(reason), std::string::npos) << reasons[0];
  }
}

TEST(OfRecord, FactsOfAFinishedReport) {
  const Json validation = SampleReport().at("validation");
  const ValidationFacts facts = FactsOf(validation, "x");
  EXPECT_EQ(facts.source, "model");
  EXPECT_EQ(facts.headline_arm, validation.at("headline_arm").get<std::string>());
  EXPECT_EQ(facts.recent_tokens, 256);
  EXPECT_EQ(facts.others_k, 0.96);
  EXPECT_TRUE(facts.own_model && facts.predictions);
  EXPECT_EQ(facts.scored_tokens, 18426);
  EXPECT_GT(facts.longest_context, 320);
  Json without = validation;
  without.erase("model");
  EXPECT_FALSE(FactsOf(without, "x").own_model);
  without.erase("settings");
  EXPECT_THROW(FactsOf(without, "x"), InputError);
}

}  // namespace
}  // namespace oscar
