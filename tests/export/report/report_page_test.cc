// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/report_page.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "export/report/html.h"
#include "export/report/verdict.h"
#include "linalg/base/error.h"
#include "tests/export/report/sample_report.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// The number as the page must show it: exact value, place in the record, printed form.
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

TEST(ReportPage, ShowsEveryNumberOfTheArmTable) {
  const Json report = SampleReport();
  const std::string page = ReportPage(report);
  const auto expect = [&](const std::string& pointer, Format format) {
    EXPECT_NE(page.find(Shown(report, pointer, format)), page.npos) << pointer;
  };
  for (size_t i = 0; i < report["validation"]["arms"].size(); ++i) {
    const std::string arm = "/validation/arms/" + std::to_string(i);
    expect(arm + "/local/kl/mean", Format::kError);
    expect(arm + "/end_to_end/kl/mean", Format::kError);
    expect(arm + "/local/output_rel_error", Format::kError);
    expect(arm + "/text/perplexity", Format::kPerplexity);
    expect(arm + "/text/ppl_ratio", Format::kPerplexity);
    expect(arm + "/text/token_kl/mean", Format::kError);
    expect(arm + "/text/top1_agreement", Format::kPercent);
    expect(arm + "/needle/accuracy", Format::kPercent);
    expect(arm + "/tool_call/token_kl/mean", Format::kError);
    expect(arm + "/reasoning/token_kl/mean", Format::kError);
    expect(arm + "/reasoning/tokens_until", Format::kBits);
    expect(arm + "/tool_call/by_task/1/token_kl", Format::kError);
    expect(arm + "/tool_call/by_task/0/accuracy", Format::kPercent);
    expect(arm + "/bits_per_element/paper", Format::kBits);
    expect(arm + "/bits_per_element/actual", Format::kBits);
  }
}

TEST(ReportPage, FollowsTheRecordAndNotItsOwnArithmetic) {
  Json report = SampleReport();
  report["validation"]["arms"][5]["text"]["ppl_ratio"] = 7.7777;  // not perplexity / reference
  report["validation"].erase("gate");
  EXPECT_NE(ReportPage(report).find(">7.7777</data>"), std::string::npos);
}

// The page shows the choice of --auto, the numbers of every KV head, and all warnings about it.
TEST(ReportPage, ShowsTheAutomaticChoice) {
  const Json report = SampleReport();
  const std::string page = ReportPage(report);
  const auto shown = [&](const std::string& pointer, Format format) {
    EXPECT_NE(page.find(Shown(report, pointer, format)), page.npos) << pointer;
  };
  for (const std::string layer : {"0", "1", "2", "4"}) {
    const std::string choice = "/layers/" + layer + "/auto";
    const std::string option = layer == "0" ? "1" : "0";  // of the bits that were chosen
    for (const char* head : {"0", "1"})
      shown(choice + "/k_options/" + option + "/clip/" + head, Format::kBits);
    shown(choice + "/k_options/" + option + "/check", Format::kError);
    shown(choice + "/guard/v_hadamard", Format::kError);
  }
  for (const char* head : {"0", "1"})
    shown(std::string("/layers/0/auto/k_options/1/head_bits/") + head, Format::kCount);
  EXPECT_EQ(page.find("/layers/0/auto/k_options/0/clip"), page.npos);
  shown("/layers/1/auto/v_options/0/bits", Format::kCount);
  EXPECT_EQ(Count(page, "lost to Hadamard + clip, which is exported"), 1u);
  shown("/layers/2/auto/stability/k_cost", Format::kPercent);
  EXPECT_EQ(Count(page, ">unstable: "), 2u);  // both sides of layer 2
  EXPECT_EQ(Count(page, ">refined<"), 2u);
  shown("/serving/auto/windows/1/bits_per_element", Format::kBits);
  shown("/serving/auto/windows/1/kl", Format::kError);
  const std::string bare = ReportPage(SampleReport({.validation = false, .held_out = false}));
  EXPECT_EQ(bare.find("<section id=\"choice\""), bare.npos);
}

// The sample's random rotation is the best on the last of three domains.
TEST(ReportPage, ShowsEveryDomainAndWhereTheGainHolds) {
  const Json report = SampleReport();
  const std::string page = ReportPage(report);
  for (const char* arm : {"1", "5", "8"}) {
    for (const char* domain : {"0", "2"}) {
      const std::string at = std::string("/validation/arms/") + arm + "/by_domain/" + domain;
      EXPECT_NE(page.find(Shown(report, at + "/text/mean", Format::kError)), page.npos) << at;
      EXPECT_NE(page.find(Shown(report, at + "/local/mean", Format::kError)), page.npos) << at;
      EXPECT_NE(page.find("data-path=\"" + at + "/text/mean\" data-value"), page.npos) << at;
    }
  }
  EXPECT_NE(page.find(Shown(report, "/validation/arms/2/behind/text/mean", Format::kError)),
            page.npos);
  const Verdict verdict = VerdictOf(report["validation"]);
  EXPECT_NE(verdict.domains.find("worst on tables: next-token KL 0.0152"), std::string::npos)
      << verdict.domains;
  EXPECT_NE(verdict.domains.find("Better than a random rotation on 1 of 3 only (prose); no better "
                                 "on code; worse on tables."),
            std::string::npos)
      << verdict.domains;
  EXPECT_NE(page.find("worse on tables"), page.npos);
  EXPECT_EQ(verdict.caution, "");

  Json few = report;
  few["validation"]["arms"][5]["local"]["rows"] = 999;
  EXPECT_NE(ReportPage(few).find("999 query rows of attention; with fewer than 1000"),
            std::string::npos);
}

// Reports of version 3 have neither differences nor domains, and say so instead of guessing.
TEST(ReportPage, ReadsReportsWithoutDifferences) {
  Json old = SampleReport();
  old["$schema"]["version"] = 3;
  for (Json& arm : old["validation"]["arms"]) {
    arm.erase("behind");
    arm.erase("by_domain");
  }
  const std::string page = ReportPage(old);
  EXPECT_EQ(page.find("<section id=\"domains\""), page.npos);
  EXPECT_NE(page.find("not compared with a random rotation"), page.npos);
  EXPECT_NO_THROW(ReportPage(ReadJsonFile(TestData("reports/of_a_run.json"))));
}

TEST(ReportPage, SaysWhatARuntimeLoses) {
  const Json report = SampleReport();
  const std::string page = ReportPage(report);
  for (const char* number : {"kl", "end_to_end_kl", "output_rel_error", "perplexity", "token_kl"}) {
    const std::string pointer = std::string("/validation/arms/10/ideal/") + number;
    EXPECT_NE(page.find(Shown(report, pointer, Format::kError)), page.npos) << pointer;
  }
  Json without = report;
  without["validation"]["arms"][10].erase("ideal");
  EXPECT_EQ(ReportPage(without).find("What runtimes lose"), std::string::npos);
}

TEST(ReportPage, ShowsRecallByLengthAndDepth) {
  const Json report = SampleReport();
  const std::string page = ReportPage(report);
  for (const char* cell : {"0", "7", "15"}) {
    const std::string pointer =
        std::string("/validation/arms/5/needle/by_length_depth/") + cell + "/accuracy";
    EXPECT_NE(page.find(Shown(report, pointer, Format::kPercent)), page.npos) << pointer;
  }
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

// The page shows the choice at each budget, its capacity on a device, and which pass the gate.
TEST(ReportPage, ShowsAtHowManyBits) {
  Json report = SampleReport({.every_member = true});
  const std::string page = ReportPage(report);
  EXPECT_NE(page.find("<section id=\"bits\""), page.npos);
  for (const std::string arm : {"0", "5", "6"}) {
    const std::string capacity = "/validation/arms/" + arm + "/capacity";
    for (const char* context : {"0", "1", "2"}) {
      const std::string bytes = capacity + "/held/" + context + "/bytes";
      EXPECT_NE(page.find(Shown(report, bytes, Format::kGigabytes)), page.npos) << bytes;
    }
    const std::string bits = capacity + "/held/1/bits", requests = capacity + "/requests";
    EXPECT_NE(page.find(Shown(report, bits, Format::kBits)), page.npos);
    EXPECT_NE(page.find(Shown(report, requests, Format::kCount)), page.npos);
    const std::string kl = "/validation/arms/" + arm + "/own_words/token_kl/mean";
    EXPECT_NE(page.find(Shown(report, kl, Format::kError)), page.npos);
  }
  EXPECT_NE(page.find("chosen at 2.25 bits"), page.npos);
  EXPECT_EQ(Count(page, "4 bits would pass, the fewest among the measured budgets (2.25, 4)"), 1u);
  for (Json& arm : report["validation"]["arms"]) arm["capacity"]["passes_gate"] = false;
  EXPECT_NE(ReportPage(report).find("None of the measured budgets"), page.npos);
  report["validation"]["arms"][1]["method"] = "fp8_e4m3";
  report["validation"]["arms"][1]["capacity"]["passes_gate"] = true;
  EXPECT_NE(ReportPage(report).find("vLLM, SGLang: --kv-cache-dtype fp8_e4m3"), page.npos);
  EXPECT_EQ(ReportPage(SampleReport()).find("<section id=\"bits\""), page.npos);
}

TEST(ReportPage, ShowsWhereKernelsAndCodecDiffer) {
  const Json report = SampleReport({.kernels_pass = false});
  const std::string page = ReportPage(report);
  EXPECT_NE(page.find(">✗</span>Kernels failed"), page.npos);
  EXPECT_NE(page.find("CUDA kernels failed on this model"), page.npos);  // at the top
  EXPECT_NE(page.find("<span class=\"fail\">" +
                      Shown(report, "/validation/kernels/layers/3/heads/0/differing_codes",
                            Format::kCount) +
                      " in head 0"),
            page.npos);
  Json inexact = SampleReport();
  inexact["validation"]["kernels"]["layers"][2]["heads"][1]["kernel_error"] = 0.37;
  inexact["validation"]["kernels"]["passed"] = false;
  EXPECT_NE(
      ReportPage(inexact).find(
          "<span class=\"fail\">" +
          Shown(inexact, "/validation/kernels/layers/2/heads/1/kernel_error", Format::kError)),
      page.npos);
  const std::string good = ReportPage(SampleReport());
  EXPECT_NE(good.find(">✓</span>Kernels passed"), good.npos);
  EXPECT_EQ(good.find("ernels failed"), good.npos);
  const std::string without = ReportPage(SampleReport({.kernels = false}));
  EXPECT_EQ(without.find("<section id=\"kernels\""), without.npos);
}

TEST(ReportPage, NothingOfARecordBecomesMarkup) {
  const std::string page = ReportPage(SampleReport({.hostile = true}));
  for (const char* tag : {"<script", "<img", "</style></svg>", "\x01", "\x7f"})
    EXPECT_EQ(page.find(tag), page.npos) << tag;
  EXPECT_NE(page.find("&lt;script&gt;"), page.npos);
  EXPECT_EQ(Count(page, "</title>"), Count(page, "<title"));
  EXPECT_EQ(Count(page, "</svg>"), Count(page, "<svg"));
  EXPECT_EQ(Count(page, "<style>"), 1u);
}

TEST(ReportPage, LoadsNothingAndRunsNothing) {
  const std::string page = ReportPage(SampleReport());
  for (const char* forbidden : {"http:", "https:", "url(", "@import", "<script", "<link", " src="})
    EXPECT_EQ(page.find(forbidden), page.npos) << forbidden;
  EXPECT_NE(page.find("default-src 'none'"), page.npos);
}

TEST(ReportPage, IsCompleteWithoutValidation) {
  const std::string page = ReportPage(SampleReport({.validation = false}));
  for (const char* section :
       {"provenance", "layer-error", "choice", "clip", "spectra", "layers", "settings"})
    EXPECT_NE(page.find("<section id=\"" + std::string(section) + '"'), page.npos) << section;
  for (const char* section : {"methods", "arms", "context", "heads", "needle", "memory"})
    EXPECT_EQ(page.find("<section id=\"" + std::string(section) + '"'), page.npos) << section;
  EXPECT_EQ(Count(page, "<a href="), Count(page, "<section id="));
}

TEST(ReportPage, LeavesOutWhatWasNotMeasured) {
  const std::string dump = ReportPage(SampleReport({.end_to_end = false, .gate_passes = false}));
  EXPECT_EQ(dump.find("<section id=\"needle\""), dump.npos);
  EXPECT_EQ(dump.find("/end_to_end/"), dump.npos);
  EXPECT_NE(dump.find("<section id=\"heads\""), dump.npos);
  const std::string bare = ReportPage(SampleReport({.validation = false, .held_out = false}));
  EXPECT_EQ(bare.find("<section id=\"clip\""), bare.npos);
  EXPECT_NE(bare.find("No tokens were held out"), bare.npos);
  Json empty = SampleReport({.validation = false});
  for (Json& layer : empty["layers"]) {
    layer.erase("clip_candidates");
    for (Json& side : layer["sides"]) {
      side["clip_error"] = Json::array();
      side["clip_threshold"] = Json::array();
    }
  }
  const std::string page = ReportPage(empty);
  EXPECT_EQ(page.find("<section id=\"clip\""), page.npos);
}

// Any one optional part may be missing anywhere without a crash or an empty chart.
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
  EXPECT_EQ(page.find("<section id=\"context\""), page.npos);
  for (const char* bad : {">nan", ",nan", "\"nan", " nan", "inf,", ">inf", "\"inf\""})
    EXPECT_EQ(page.find(bad), page.npos) << bad;
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
