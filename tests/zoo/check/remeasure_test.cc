// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests how a second measurement is compared with the recorded one. No model is used: the second
// report is made up.
#include "zoo/check/remeasure.h"

#include <gtest/gtest.h>

#include "export/artifact/artifact_reader.h"
#include "linalg/base/error.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/support/test_data.h"
#include "tests/zoo/sample_zoo.h"
#include "zoo/keep/publish.h"
#include "zoo/keep/verify.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Returns the validation that a validated sample artifact records.
Json ValidatedIn(const char* scratch) {
  const fs::path artifact = TestScratch(scratch) / "a";
  WriteValidated(artifact);
  return Artifact::Open(artifact).report().at("validation");
}

Json& Headline(Json& validation) {
  for (Json& arm : validation["arms"])
    if (arm["name"] == validation["headline_arm"]) return arm;
  throw std::runtime_error("no headline");
}

TEST(Remeasure, OnTheSameMachineEveryNumberCounts) {
  const Json recorded = ValidatedIn("remeasure-same");
  EXPECT_TRUE(CompareValidations(recorded, recorded).empty());
  Json again = recorded;
  Headline(again)["local"]["logit_mse"] = 0.11;  // no other number depends on it
  const std::vector<std::string> lines = CompareValidations(recorded, again);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("logit_mse"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("now measured 0.11"), std::string::npos) << lines[0];
}

TEST(Remeasure, ElsewhereWhatAGateMayNameCountsRoughly) {
  const Json recorded = ValidatedIn("remeasure-else");
  Json again = recorded;
  again["machine"]["device"] = "another";
  Headline(again)["local"]["kl"]["mean"] =
      recorded["arms"][5]["local"]["kl"]["mean"].get<double>() * 1.01;
  // Generated text differs between machines, so its numbers are not compared.
  Headline(again)["reasoning"]["tokens_until"] = 1;
  EXPECT_TRUE(CompareValidations(recorded, again).empty());
  Headline(again)["local"]["kl"]["mean"] = 0.045;
  EXPECT_EQ(CompareValidations(recorded, again).size(), 1u);
  Headline(again)["tool_call"]["accuracy"] = 0;
  EXPECT_EQ(CompareValidations(recorded, again).size(), 2u);
}

TEST(Remeasure, NumbersOfOtherTextAreNotCompared) {
  const Json recorded = ValidatedIn("remeasure-text");
  Json again = recorded;
  again["data"]["digest"] = "other";
  Headline(again)["local"]["kl"]["mean"] = 1;
  const std::vector<std::string> lines = CompareValidations(recorded, again);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("/data/digest"), std::string::npos) << lines[0];
}

TEST(Remeasure, TheConfigurationNamesEverythingAndHasNoGate) {
  Json validation = {{"headline_arm", "auto+windows"},
                     {"settings",
                      {{"arms", {"bf16", "auto+windows"}},
                       {"sink_tokens", 4},
                       {"recent_tokens", 5},
                       {"quant_group_size", 0},
                       {"compute_dtype", "f32"},
                       {"configuration",
                        {{"arms", Json::array()},
                         {"methods", {"all"}},
                         {"gate", "kl<=1"},
                         {"kernels", true},
                         {"sequences", 3}}}}}};
  validation["arms"] = {{{"name", "bf16"}, {"needle", Json::object()}}, {{"name", "auto+windows"}}};
  const Json configuration = RecordedConfiguration(validation, "x");
  EXPECT_EQ(configuration, Json({{"arms", {"bf16", "auto+windows"}},
                                 {"methods", Json::array()},
                                 {"needle_arms", {"bf16"}},
                                 {"headline_arm", "auto+windows"},
                                 {"sink_tokens", 4},
                                 {"recent_tokens", 5},
                                 {"quant_group_size", 0},
                                 {"dtype", "f32"},
                                 {"scope", "normal"},
                                 {"sequences", 3}}));
  validation["settings"].erase("configuration");
  EXPECT_THROW(RecordedConfiguration(validation, "x"), InputError);
}

// The forged report has consistent numbers and the right digests, so only a measurement with the
// model reveals it.
TEST(Remeasure, AForgedReportIsFoundWhereTheModelIsAtHand) {
  const fs::path scratch = TestScratch("remeasure-forged"), artifact = scratch / "a";
  const Zoo zoo = NewZoo(scratch / "zoo");
  WriteValidated(artifact, 1, [](Json& v) { v["settings"]["configuration"] = Json::object(); });
  const Json truth = Artifact::Open(artifact).report();
  EditValidation(artifact, [](Json& v) { Headline(v)["local"]["output_rel_error"] = 1e-3; });
  Publish(zoo, artifact, {}, {});
  EXPECT_TRUE(Verify(zoo, std::nullopt).problems.empty());

  ModelGeometry model;
  const Json geometry = Artifact::Open(artifact).manifest().at("geometry");
  for (const Json& layer : geometry) {
    LayerSpec spec;
    spec.layer_id = layer.at("layer_id");
    spec.attention.num_q_heads = layer.at("num_q_heads");
    spec.attention.num_kv_heads = layer.at("num_kv_heads");
    spec.attention.head_dim = layer.at("head_dim");
    spec.attention.v_head_dim = layer.at("v_head_dim");
    model.spec.layers.push_back(spec);
  }
  Json asked;
  const Remeasure remeasure{model, [&](const fs::path&, const Json& configuration) {
                              asked = configuration;
                              return truth;
                            }};
  const Verified verified = Verify(zoo, {{{"example", "Tiny"}, std::nullopt}}, remeasure);
  EXPECT_EQ(verified.measured, 1u);
  EXPECT_EQ(asked.at("headline_arm"), "oscar_per_head+clip+windows");
  ASSERT_EQ(verified.problems.size(), 1u);
  EXPECT_NE(verified.problems[0].what.find("output_rel_error"), std::string::npos);
  EXPECT_NE(verified.problems[0].what.find("recorded 0.001"), std::string::npos);
}

}  // namespace
}  // namespace oscar
