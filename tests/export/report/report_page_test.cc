// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/report_page.h"

#include <gtest/gtest.h>

#include <string>

#include "export/report/html.h"
#include "export/report/verdict.h"
#include "linalg/base/error.h"
#include "tests/export/report/sample_report.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Returns the number as the page must show it: exact value, place in the record, printed form.
std::string Shown(const Json& report, const std::string& pointer, Format format) {
  const Json& value = report.at(Json::json_pointer(pointer));
  return "<data value=\"" + value.dump() + "\" data-path=\"" + pointer + "\">" +
         FormatNumber(value.get<double>(), format) + "</data>";
}

TEST(ReportPage, IsAPureFunctionOfTheRecord) {
  const Json report = SampleReport();
  const std::string page = ReportPage(report);
  EXPECT_EQ(page, ReportPage(report));
  EXPECT_EQ(page, ReportPage(ParseStrictJson(CanonicalJson(report), "copy")));
}

// The page shows each number in printed form, with its exact value and its place in the record.
TEST(ReportPage, ShowsTheNumbersOfTheRecord) {
  const Json report = SampleReport({.every_member = true});
  const std::string page = ReportPage(report);
  const auto expect = [&](const std::string& pointer, Format format) {
    EXPECT_TRUE(page.find(Shown(report, pointer, format)) != page.npos) << pointer;
  };
  for (size_t i = 0; i < report["validation"]["arms"].size(); ++i) {
    const std::string arm = "/validation/arms/" + std::to_string(i);
    for (const char* error :
         {"/local/kl/mean", "/end_to_end/kl/mean", "/local/output_rel_error", "/text/token_kl/mean",
          "/tool_call/token_kl/mean", "/reasoning/token_kl/mean", "/tool_call/by_task/1/token_kl"})
      expect(arm + error, Format::kError);
    for (const char* share :
         {"/text/top1_agreement", "/needle/accuracy", "/tool_call/by_task/0/accuracy"})
      expect(arm + share, Format::kPercent);
    for (const char* ratio : {"/text/perplexity", "/text/ppl_ratio"})
      expect(arm + ratio, Format::kPerplexity);
    for (const char* bits :
         {"/bits_per_element/paper", "/bits_per_element/actual", "/reasoning/tokens_until"})
      expect(arm + bits, Format::kBits);
  }
  for (const char* choice :
       {"/layers/0/auto/k_options/1/clip/1", "/layers/1/auto/k_options/0/clip/0",
        "/serving/auto/windows/1/bits_per_element"})
    expect(choice, Format::kBits);
  for (const char* error :
       {"/layers/0/auto/k_options/1/check", "/layers/2/auto/guard/v_hadamard",
        "/serving/auto/windows/1/kl", "/validation/arms/8/by_domain/2/text/mean",
        "/validation/arms/5/by_domain/0/local/mean", "/validation/arms/2/behind/text/mean",
        "/validation/arms/10/ideal/kl", "/validation/arms/10/ideal/perplexity",
        "/validation/arms/5/own_words/token_kl/mean"})
    expect(error, Format::kError);
  for (const char* count :
       {"/layers/0/auto/k_options/1/head_bits/1", "/layers/1/auto/v_options/0/bits",
        "/validation/arms/5/capacity/requests"})
    expect(count, Format::kCount);
  for (const char* share :
       {"/layers/2/auto/stability/k_cost", "/validation/arms/5/needle/by_length_depth/15/accuracy"})
    expect(share, Format::kPercent);
  expect("/validation/arms/5/capacity/held/1/bits", Format::kBits);
  expect("/validation/arms/6/capacity/held/2/bytes", Format::kGigabytes);
  EXPECT_EQ(page.find("/layers/0/auto/k_options/0/clip"), page.npos);  // bits that were not chosen
}

// In the sample, the random rotation is best on the last of three domains.
TEST(ReportPage, SaysOnWhichDomainsTheGainHolds) {
  const Verdict verdict = VerdictOf(SampleReport()["validation"]);
  EXPECT_TRUE(Says(verdict.domains, "worst on tables"));
  EXPECT_TRUE(Says(verdict.domains, "on 1 of 3 only (prose)"));
  EXPECT_EQ(verdict.caution, "");
}

// The page says which of the measured budgets would pass the gate.
TEST(ReportPage, SaysHowManyBitsWouldPass) {
  Json report = SampleReport({.every_member = true});
  EXPECT_NE(ReportPage(report).find("4 bits would pass, the fewest among the measured budgets"),
            std::string::npos);
  for (Json& arm : report["validation"]["arms"]) arm["capacity"]["passes_gate"] = false;
  EXPECT_NE(ReportPage(report).find("None of the measured budgets"), std::string::npos);
  report["validation"]["arms"][1]["method"] = "fp8_e4m3";
  report["validation"]["arms"][1]["capacity"]["passes_gate"] = true;
  EXPECT_NE(ReportPage(report).find("vLLM, SGLang: --kv-cache-dtype fp8_e4m3"), std::string::npos);
}

TEST(ReportPage, ShowsWhereKernelsAndCodecDiffer) {
  const Json report = SampleReport({.kernels_pass = false});
  const std::string wrong =
      Shown(report, "/validation/kernels/layers/3/heads/0/differing_codes", Format::kCount);
  EXPECT_TRUE(Says(ReportPage(report), "<span class=\"fail\">" + wrong));
  EXPECT_FALSE(Says(ReportPage(SampleReport()), "ernels failed"));
}

TEST(ReportPage, FollowsTheRecordAndNotItsOwnArithmetic) {
  Json report = SampleReport();
  report["validation"]["arms"][5]["text"]["ppl_ratio"] = 7.7777;  // not perplexity / reference
  report["validation"].erase("gate");
  EXPECT_TRUE(Says(ReportPage(report), ">7.7777</data>"));
}

// Reports of version 3 contain neither differences nor domains, and the page says so.
TEST(ReportPage, ReadsReportsWithoutDifferences) {
  Json old = SampleReport();
  old["$schema"]["version"] = 3;
  for (Json& arm : old["validation"]["arms"]) {
    arm.erase("behind");
    arm.erase("by_domain");
  }
  const std::string page = ReportPage(old);
  EXPECT_FALSE(Says(page, "<section id=\"domains\""));
  EXPECT_TRUE(Says(page, "not compared with a random rotation"));
  EXPECT_NO_THROW(ReportPage(ReadJsonFile(TestData("reports/of_a_run.json"))));
}

TEST(ReportPage, SaysWhetherTheGatePassed) {
  const auto has = [](const SampleReportOptions& options, const char* words) {
    return ReportPage(SampleReport(options)).find(words) != std::string::npos;
  };
  EXPECT_TRUE(has({}, "Gate passed"));
  EXPECT_FALSE(has({}, "Gate failed"));
  EXPECT_TRUE(has({.gate_passes = false}, "Gate failed"));
  EXPECT_FALSE(has({.gate_passes = false}, "Gate passed"));
  EXPECT_TRUE(has({.gate = false}, "no gate was given"));
  EXPECT_TRUE(has({.validation = false}, "not yet validated"));
  EXPECT_TRUE(has({.end_to_end = false, .gate_passes = false}, "not measured"));
}

TEST(ReportPage, NothingOfARecordBecomesMarkup) {
  const std::string page = ReportPage(SampleReport({.hostile = true}));
  for (const char* tag : {"<script", "<img", "</style></svg>", "\x01", "\x7f"})
    EXPECT_FALSE(Says(page, tag));
  EXPECT_TRUE(Says(page, "&lt;script&gt;"));
  EXPECT_EQ(Count(page, "</title>"), Count(page, "<title"));
  EXPECT_EQ(Count(page, "</svg>"), Count(page, "<svg"));
  EXPECT_EQ(Count(page, "<style>"), 1u);
}

TEST(ReportPage, LoadsNothingAndRunsNothing) {
  const std::string page = ReportPage(SampleReport());
  for (const char* forbidden : {"http:", "https:", "url(", "@import", "<script", "<link", " src="})
    EXPECT_FALSE(Says(page, forbidden));
  EXPECT_TRUE(Says(page, "default-src 'none'"));
}

TEST(ReportPage, IsCompleteWithoutValidation) {
  const std::string page = ReportPage(SampleReport({.validation = false}));
  for (const char* section :
       {"provenance", "layer-error", "choice", "clip", "spectra", "layers", "settings"})
    EXPECT_TRUE(Says(page, "<section id=\"" + std::string(section) + '"')) << section;
  for (const char* section : {"methods", "arms", "context", "heads", "needle", "memory"})
    EXPECT_FALSE(Says(page, "<section id=\"" + std::string(section) + '"')) << section;
  EXPECT_EQ(Count(page, "<a href="), Count(page, "<section id="));
}

TEST(ReportPage, LeavesOutWhatWasNotMeasured) {
  const std::string dump = ReportPage(SampleReport({.end_to_end = false, .gate_passes = false}));
  EXPECT_FALSE(Says(dump, "<section id=\"needle\""));
  EXPECT_FALSE(Says(dump, "/end_to_end/"));
  EXPECT_TRUE(Says(dump, "<section id=\"heads\""));
  const std::string bare = ReportPage(SampleReport({.validation = false, .held_out = false}));
  EXPECT_FALSE(Says(bare, "<section id=\"clip\""));
  EXPECT_TRUE(Says(bare, "No tokens were held out"));
  Json empty = SampleReport({.validation = false});
  for (Json& layer : empty["layers"]) {
    layer.erase("clip_candidates");
    for (Json& side : layer["sides"]) {
      side["clip_error"] = Json::array();
      side["clip_threshold"] = Json::array();
    }
  }
  const std::string page = ReportPage(empty);
  EXPECT_FALSE(Says(page, "<section id=\"clip\""));
}

// Any optional member may be missing without a crash or an empty chart.
TEST(ReportPage, SurvivesEveryMissingOptionalMember) {
  for (const char* pointer : {"/validation/model",
                              "/validation/data/overlap",
                              "/validation/arms/5/end_to_end",
                              "/validation/arms/5/text",
                              "/validation/arms/5/needle",
                              "/validation/arms/0/text",
                              "/validation/arms/2/needle",
                              "/validation/arms/5/needle/by_length_depth",
                              "/validation/arms/5/tool_call",
                              "/validation/arms/5/tool_call/accuracy",
                              "/validation/arms/5/by_domain",
                              "/validation/arms/1/by_domain/0/text",
                              "/validation/arms/5/by_domain/2/local",
                              "/validation/arms/8/behind",
                              "/validation/arms/10/ideal",
                              "/validation/arms/5/local/kl/interval",
                              "/model/id",
                              "/data/tokens",
                              "/data/name",
                              "/calibration/held_out",
                              "/layers/0/sides/k_shared",
                              "/layers/3/arms/naive",
                              "/serving/sink_tokens"}) {
    Json report = SampleReport();
    const Json::json_pointer at(pointer);
    report.at(at.parent_pointer()).erase(at.back());
    EXPECT_GT(ReportPage(report).size(), 10000u) << pointer;
  }
  Json empty = SampleReport();
  for (Json& arm : empty["validation"]["arms"]) {
    for (const char* metrics : {"local", "end_to_end"}) {
      for (const char* list : {"by_position", "by_length"}) arm[metrics][list] = Json::array();
      arm[metrics]["heads"] = {{"layer_ids", Json::array()}, {"kl", Json::array()}};
    }
    for (const char* list : {"by_task", "by_depth", "by_length"})
      arm["needle"][list] = Json::array();
    arm["tool_call"]["by_task"] = Json::array();
    arm["text"]["by_position"] = Json::array();
  }
  empty["layers"] = Json::array();
  const std::string page = ReportPage(empty);
  EXPECT_FALSE(Says(page, "<section id=\"context\""));
  for (const char* bad : {">nan", ",nan", "\"nan", " nan", "inf,", ">inf", "\"inf\""})
    EXPECT_FALSE(Says(page, bad));
}

TEST(ReportPage, RefusesWhatIsNoReport) {
  Json report = SampleReport();
  report["validation"]["arms"][0].erase("local");
  EXPECT_THROW(ReportPage(report), InputError);
  EXPECT_THROW(ReportPage(Json::object()), InputError);
}

TEST(ReportPage, OfALargeModelStaysSmall) {
  EXPECT_LT(ReportPage(SampleReport(LargeSample())).size(), 1500000u);
}

TEST(ReportPage, PrintsNumbersAsDocumented) {
  EXPECT_EQ(FormatNumber(0.03914, Format::kError), "0.0391");
  EXPECT_EQ(FormatNumber(0.002531, Format::kError), "0.00253");
  EXPECT_EQ(FormatNumber(0, Format::kError), "0");
  EXPECT_EQ(FormatNumber(0.000312, Format::kError), "3.1e-04");
  EXPECT_EQ(FormatNumber(1234.56, Format::kError), "1235");
  EXPECT_EQ(FormatNumber(2.4715, Format::kPerplexity), "2.4715");
  EXPECT_EQ(FormatNumber(0.97, Format::kPercent), "97.0\u202F%");
  EXPECT_EQ(FormatNumber(18420, Format::kCount), "18\u202F420");
  EXPECT_EQ(FormatNumber(-100, Format::kCount), "-100");
  EXPECT_EQ(FormatNumber(2.3843, Format::kBits), "2.38");
  EXPECT_EQ(FormatNumber(3.14e-15, Format::kInvariant), "3.1e-15");
  EXPECT_EQ(HtmlCut("äöü<", 4), "äöü&lt;");
  EXPECT_EQ(HtmlCut("äöüß<", 4), "äöü…");
}

}  // namespace
}  // namespace oscar
