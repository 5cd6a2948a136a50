// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "export/artifact/report.h"

#include <gtest/gtest.h>

#include "export/artifact/model_card.h"
#include "tests/export/artifact/sample_artifact.h"

namespace oscar {
namespace {

Json SampleReport(const std::string& model) {
  return MakeReport({{"model", {{"id", model}}},
                     {"data", {{"name", "sample"}}},
                     {"calibration", {{"value_target", "attention_output"}}},
                     {"serving",
                      {{"k_clip_ratio", 0.96},
                       {"v_clip_ratio", 0.92},
                       {"k_clip_ratio_shared", 0.96},
                       {"v_clip_ratio_shared", 0.92}}}},
                    {LayerReport(SampleLayer(0, 1)), LayerReport(SampleLayer(1, 1))});
}

TEST(Report, SummaryIsTheMeanAndTheWorst) {
  const Json summary = SampleReport("m").at("summary");
  EXPECT_EQ(summary.at("arms").at("naive").at("kl_mean"), 0.375);
  EXPECT_EQ(summary.at("arms").at("naive").at("kl_max"), 2);
  EXPECT_LE(summary.at("orthogonality"), 1e-12);
  EXPECT_GT(summary.at("float32_orthogonality"), 0);
}

TEST(Report, TableHasARowPerLayerAndTheMean) {
  const ReportTable table = SummaryTable(SampleReport("m"));
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.header.back(), "KL naive");
  EXPECT_EQ(table.rows[0].front(), "3");
  EXPECT_EQ(table.rows[2].back(), "0.37500");
}

TEST(Report, PageShowsTheRecordAndEscapesNames) {
  const std::string page = ReportPage(SampleReport("<script>alert(1)</script>"));
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
  EXPECT_NE(page.find("<td>0.375</td>"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos);  // nothing is fetched
}

TEST(Report, CardCannotBreakOutOfItsFrontMatter) {
  const std::string card = ModelCard(SampleReport("evil\n---\nlicense: other"));
  EXPECT_EQ(card.find("\nlicense:"), std::string::npos) << card;
  EXPECT_NE(card.find("base_model: \"evil\\n---"), std::string::npos) << card;
}

}  // namespace
}  // namespace oscar
