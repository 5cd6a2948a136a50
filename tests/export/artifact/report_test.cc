// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/report.h"

#include <gtest/gtest.h>

#include "calib/job/refit_layer.h"
#include "export/artifact/model_card.h"
#include "export/report/report_schema.h"
#include "tests/calib/moments/sample_moments.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/export/report/sample_report.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

Json Calibrated(const std::string& model) {
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
  const Json summary = Calibrated("m").at("summary");
  EXPECT_EQ(summary.at("arms").at("naive").at("kl_mean"), 0.375);
  EXPECT_EQ(summary.at("arms").at("naive").at("kl_max"), 2);
  EXPECT_LE(summary.at("orthogonality"), 1e-12);
  EXPECT_GT(summary.at("float32_orthogonality"), 0);
}

TEST(Report, TableHasARowPerLayerAndTheMean) {
  const ReportTable table = SummaryTable(Calibrated("m"));
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.header.back(), "naive");
  EXPECT_EQ(table.rows[0].front(), "3");
  EXPECT_EQ(table.rows[2].back(), "0.50000");  // mean KL of rows beyond the windows
  LayerResult inside = SampleLayer(1, 1);
  inside.arms[0].rows_beyond = 0;
  const ReportTable partly = SummaryTable(
      MakeReport(Json::object(), {LayerReport(SampleLayer(0, 1)), LayerReport(inside)}));
  EXPECT_EQ(partly.rows[1].back(), "-");
  EXPECT_EQ(partly.rows[2].back(), "0.62500");
}

TEST(Report, IsWhatTheSchemaDemands) {
  const Json report = Calibrated("m");
  EXPECT_EQ(report.at("$schema").at("version"), 4);
  EXPECT_NO_THROW(CheckReport(report, "report"));
  EXPECT_NO_THROW(CheckReport(ParseStrictJson(CanonicalJson(report), "copy"), "copy"));
  const Json unmeasured = MakeReport({{"model", Json::object()},
                                      {"data", Json::object()},
                                      {"calibration", Json::object()},
                                      {"serving", report.at("serving")}},
                                     {LayerReport(RefitLayer(SampleMoments(3, 50, 1), {}, {}))});
  EXPECT_NO_THROW(CheckReport(unmeasured, "refitted, nothing held out"));
  EXPECT_TRUE(Says(ReportPage(unmeasured), "No tokens were held out"));
}

TEST(Report, SpectrumIsTheMeanOfTheRotationsSharesOfTheirTrace) {
  LayerResult layer = SampleLayer(0, 1);
  layer.k.num_rotations = 2;
  layer.k.dim = 4;
  layer.k.eigenvalues = {0, 1, 2, 5, 10, 10, 20, 40};  // ascending in each of two rotations
  const Json side = LayerReport(layer).at("sides").at("k");
  EXPECT_EQ(side.at("spectrum_ranks"), (Json{0, 1, 2, 3}));
  const std::vector<double> expected = {(5 / 8. + 40 / 80.) / 2, (2 / 8. + 20 / 80.) / 2,
                                        (1 / 8. + 10 / 80.) / 2, (0 / 8. + 10 / 80.) / 2};
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(side.at("spectrum")[i].get<double>(), expected[i], 1e-15);
}

TEST(Report, SpectrumHasSixtyFourEvenRanksFromTheLargestToTheSmallest) {
  LayerResult layer = SampleLayer(0, 1);
  layer.v.num_rotations = 1;
  layer.v.dim = 128;
  layer.v.eigenvalues.resize(128);
  for (size_t i = 0; i < 128; ++i) layer.v.eigenvalues[i] = static_cast<double>(i);
  const Json side = LayerReport(layer).at("sides").at("v");
  const auto ranks = side.at("spectrum_ranks").get<std::vector<int>>();
  ASSERT_EQ(ranks.size(), 64u);
  EXPECT_EQ(ranks.front(), 0);
  EXPECT_EQ(ranks.back(), 127);
  for (size_t i = 1; i < ranks.size(); ++i) {
    EXPECT_GE(ranks[i] - ranks[i - 1], 2);
    EXPECT_LE(ranks[i] - ranks[i - 1], 3);
  }
  EXPECT_DOUBLE_EQ(side.at("spectrum")[0].get<double>(), 127.0 / (127 * 64));
  EXPECT_EQ(side.at("spectrum")[63], 0.0);
  layer.v.eigenvalues.assign(128, 0.0);  // a trace of 0 has no shares
  EXPECT_FALSE(LayerReport(layer).at("sides").at("v").contains("spectrum"));
}

TEST(Report, PageShowsTheRecordAndEscapesNames) {
  const std::string page = ReportPage(Calibrated("<script>alert(1)</script>"));
  EXPECT_FALSE(Says(page, "<script"));
  EXPECT_TRUE(Says(page, "&lt;script&gt;"));
  EXPECT_TRUE(Says(page, "data-path=\"/summary/arms/naive/kl_mean_beyond\">0.5000</data>"));
  EXPECT_TRUE(Says(page, "<section id=\"spectra\""));
}

TEST(Report, CardSpeaksOfTheValidationWhereThereIsOne) {
  const Json calibrated = Calibrated("m");
  EXPECT_FALSE(Says(ModelCard(calibrated), "## Validation"));
  Json validated = SampleReport();
  const std::string card = ModelCard(validated);
  EXPECT_TRUE(Says(card, "Gate `kl<=0.05,ppl_ratio<=1.02`: passed"));
  EXPECT_TRUE(Says(card,
                   "| **oscar_per_head+clip+windows** | 0.0351 | 0.0667 | 0.0109 | 2.4715 | "
                   "1.0043 | 93.0 % | 3.32 |"));
  for (const char* sentence : {"better than a Hadamard rotation by 0.0013 (0.0001 to 0.0024)",
                               "Among 3 domains of the text, it is worst on tables"})
    EXPECT_TRUE(Says(card, sentence));
  std::string hostile = ModelCard(SampleReport({.hostile = true}));
  hostile.erase(0, hostile.find("\n---\n"));   // front matter: escaped as JSON strings
  hostile.erase(hostile.find("Gate `"), 400);  // code span: needs no escaping
  EXPECT_FALSE(Says(hostile, "<script"));
  validated["validation"].erase("gate");
  EXPECT_TRUE(Says(ModelCard(validated), "No gate was given"));
}

TEST(Report, CardCannotBreakOutOfItsFrontMatter) {
  const std::string card = ModelCard(Calibrated("evil\n---\nlicense: other"));
  EXPECT_FALSE(Says(card, "\nlicense:"));
  EXPECT_TRUE(Says(card, "base_model: \"evil\\n---"));
}

}  // namespace
}  // namespace oscar
