// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/comparison.h"

#include <gtest/gtest.h>

#include <string>

#include "linalg/base/error.h"
#include "tests/export/report/sample_report.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

Json TwoReports() {
  Json other = SampleReport({.num_layers = 4, .max_length = 1024});
  other["validation"]["model"]["id"] = "example/other";
  other["validation"]["arms"].erase(2);  // only the first report has this arm
  other["validation"]["arms"][1]["local"]["kl"]["mean"] = 0.123456;
  other["validation"]["settings"]["seed"] = 7;
  return CombineReports({{"a/report.json", SampleReport()}, {"b/report.json", other}});
}

bool Has(const std::string& page, const std::string& text) {
  return page.find(text) != std::string::npos;
}

TEST(Comparison, KeepsWhatIsComparedAndNothingPerLayerOrPosition) {
  const Json comparison = TwoReports();
  EXPECT_EQ(comparison["models"].size(), 2u);
  EXPECT_EQ(comparison["models"][1]["source"], "b/report.json");
  const Json sample = SampleReport();
  const Json& arm = comparison["models"][0]["validation"]["arms"][5];
  const Json& original = sample["validation"]["arms"][5];
  EXPECT_EQ(arm["local"]["kl"], original["local"]["kl"]);
  EXPECT_EQ(arm["text"]["perplexity"], original["text"]["perplexity"]);
  EXPECT_EQ(arm["needle"]["by_length_depth"], original["needle"]["by_length_depth"]);
  EXPECT_EQ(arm["bits_per_element"], original["bits_per_element"]);
  for (const char* gone : {"heads", "by_position", "worst"})
    EXPECT_FALSE(arm["local"].contains(gone)) << gone;
  EXPECT_LT(CanonicalJson(comparison).size(), CanonicalJson(sample).size());
}

TEST(Comparison, PutsEveryArmOfEveryModelSideBySide) {
  const Json comparison = TwoReports();
  const std::string page = ComparisonPage(comparison);
  EXPECT_EQ(page, ComparisonPage(comparison));
  for (size_t model = 0; model < 2; ++model) {
    const Json& arms = comparison["models"][model]["validation"]["arms"];
    for (size_t i = 0; i < arms.size(); ++i) {
      for (const char* number :
           {"/local/kl/mean", "/end_to_end/kl/mean", "/text/perplexity", "/needle/accuracy",
            "/tool_call/token_kl/mean", "/reasoning/tokens_until", "/bits_per_element/actual"}) {
        EXPECT_TRUE(Has(page, "data-path=\"/models/" + std::to_string(model) + "/validation/arms/" +
                                  std::to_string(i) + number + '"'))
            << model << " " << i << number;
      }
    }
  }
  EXPECT_TRUE(Has(page, ">0.1235</data>"));
  for (const char* id : {"model-1-attention", "model-2-attention", "model-1-token"})
    EXPECT_TRUE(Has(page, std::string("id=\"") + id + "-t\"")) << id;
}

TEST(Comparison, RefusesWhatCannotBeCompared) {
  const auto refusal = [](const std::vector<NamedReport>& reports) -> std::string {
    return ErrorOf<InputError>([&] { CombineReports(reports); });
  };
  EXPECT_TRUE(Has(refusal({}), "no report"));
  EXPECT_TRUE(Has(refusal({{"a", SampleReport()}, {"b", SampleReport({.validation = false})}}),
                  "b: was not validated"));
  EXPECT_TRUE(Has(refusal({{"a", SampleReport()}, {"b", Json::object()}}), "b: not a report"));
}

}  // namespace
}  // namespace oscar
