// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/comparison_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "export/report/comparison.h"
#include "linalg/base/error.h"
#include "tests/export/report/sample_report.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

// Returns a comparison of two models. In the second, arm 1 is "naive" with recognizable numbers,
// and arm 2 is missing.
Json Two() {
  Json other = SampleReport();
  other["validation"]["model"]["id"] = "example/other";
  other["validation"]["arms"].erase(2);
  Json& arm = other["validation"]["arms"][1];
  arm["local"]["kl"]["mean"] = 0.0123456789;
  arm["text"]["token_kl"]["mean"] = 0.00456789;
  arm["text"]["perplexity"] = 35.84;
  return CombineReports({{"a", SampleReport()}, {"b", other}});
}

std::string NameOf(const Json& comparison, size_t arm) {
  return comparison["models"][0]["validation"]["arms"][arm]["name"];
}

std::string LineWith(const std::string& text, const std::string& what) {
  const size_t at = text.find(what);
  if (at == std::string::npos) return "";
  const size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

std::string CodeOf(const Json& comparison, size_t arm) {
  return '`' + NameOf(comparison, arm) + '`';
}

TEST(ComparisonTable, CsvHasARowPerModelAndArmWithEveryDigit) {
  const Json comparison = Two();
  const std::string csv = ComparisonCsv(comparison);
  const size_t arms = comparison["models"][0]["validation"]["arms"].size();
  EXPECT_EQ(std::ranges::count(csv, '\n'), static_cast<std::ptrdiff_t>(2 * arms));  // with heading
  EXPECT_TRUE(csv.starts_with(
      "model,arm,method,description,clip,windows,null_control,bits,stored_bits,kl,"));
  const std::string row = LineWith(csv, "\"example/other\",\"" + NameOf(comparison, 1) + '"');
  EXPECT_TRUE(Says(row, ",0.0123456789,"));
  EXPECT_TRUE(Says(row, ",35.84,"));
  const std::string heading = csv.substr(0, csv.find('\n'));
  EXPECT_TRUE(heading.ends_with(",seed,bootstrap,text,text_digest,oscar_version,oscar_commit\r"));
  EXPECT_TRUE(row.ends_with("\"0.1.0\",\"94daeac\"\r")) << row;
}

TEST(ComparisonTable, MarkdownShowsChosenRowsInTheirOrderAndFoldsTheOthers) {
  const Json comparison = Two();
  const std::string table =
      ComparisonMarkdown(comparison, {NameOf(comparison, 3), NameOf(comparison, 1)});
  const size_t third = table.find(CodeOf(comparison, 3)), first = table.find(CodeOf(comparison, 1)),
               fold = table.find("<details>"), other = table.find(CodeOf(comparison, 4));
  EXPECT_LT(third, first);
  EXPECT_LT(first, fold);
  EXPECT_LT(fold, other);
  EXPECT_NE(other, std::string::npos);
  EXPECT_TRUE(
      table.starts_with("| method | bits | stored | example/proof-qwen3 | example/other |\n"))
      << table.substr(0, 120);
  EXPECT_TRUE(LineWith(table, CodeOf(comparison, 1)).ends_with(" | .0123, .00457, 35.8 |"))
      << LineWith(table, CodeOf(comparison, 1));
  EXPECT_TRUE(LineWith(table, CodeOf(comparison, 2)).ends_with(" | – |"));  // only in one model
  const auto arms = comparison["models"][0]["validation"]["arms"].size();
  EXPECT_TRUE(Says(table, "<summary>" + std::to_string(arms - 2) + " more</summary>"));
  EXPECT_FALSE(Says(ComparisonMarkdown(comparison, {}), "<details>"));
  EXPECT_THROW(ComparisonMarkdown(comparison, {"no_such_arm"}), UsageError);
}

TEST(ComparisonTable, BitsThatDifferBetweenModelsAreAllShown) {
  Json other = SampleReport();
  Json& bits = other["validation"]["arms"][1]["bits_per_element"];
  bits["actual"] = bits["paper"] = 2.79;
  const Json comparison =
      CombineReports({{"a", SampleReport()}, {"b", other}, {"c", SampleReport()}});
  const std::string table = ComparisonMarkdown(comparison, {});
  const std::string line = LineWith(table, CodeOf(comparison, 1));
  EXPECT_TRUE(Says(line, " / 2.79 | "));
  EXPECT_EQ(std::ranges::count(line, '/'), 2) << line;  // each value once per column
  EXPECT_FALSE(Says(LineWith(table, CodeOf(comparison, 3)), " / "));
}

TEST(ComparisonTable, NumbersKeepThreeDigitsThatCount) {
  const auto cell = [](double kl, double perplexity) {
    Json report = SampleReport();
    report["validation"]["arms"][1]["local"]["kl"]["mean"] = kl;
    report["validation"]["arms"][1]["text"]["token_kl"]["mean"] = kl / 10;
    report["validation"]["arms"][1]["text"]["perplexity"] = perplexity;
    const Json comparison = CombineReports({{"a", SampleReport()}, {"b", report}});
    const std::string line = LineWith(ComparisonMarkdown(comparison, {}), CodeOf(comparison, 1));
    const std::string last = line.substr(line.rfind("| ", line.size() - 2) + 2);
    return last.substr(0, last.size() - 2);
  };
  EXPECT_EQ(cell(0.03344, 3.1754), ".0334, .00334, 3.175");
  EXPECT_EQ(cell(1.3249, 35.84), "1.32, .132, 35.8");
  EXPECT_EQ(cell(24.94, 207.3), "24.9, 2.49, 207");
  EXPECT_EQ(cell(0.00221, 5e6), ".00221, .00022, collapse");
  EXPECT_EQ(cell(2.1e-7, 2.461), "2e-07, 2e-08, 2.461");
  EXPECT_EQ(cell(3e-32, 2.461), "0, 0, 2.461");
}

TEST(ComparisonTable, NamesWhatNothingBeatsAtItsBits) {
  Json comparison = Two();
  Json& arms = comparison["models"][0]["validation"]["arms"];
  const std::vector<std::pair<double, double>> bits_and_kl = {
      {16, 0}, {3.04, 0.002}, {2.25, 0.009}, {3.5, 0.004}};
  for (size_t i = 0; i < arms.size(); ++i) {
    const auto [bits, kl] = i < 4 ? bits_and_kl[i] : std::pair(5.0, 0.1);
    arms[i]["bits_per_element"]["actual"] = bits;
    arms[i]["text"]["token_kl"]["mean"] = kl;
    arms[i]["null_control"] = false;
  }
  EXPECT_EQ(LineWith(ComparisonMarkdown(comparison, {}), "2.25 ("),
            "- example/proof-qwen3: " + CodeOf(comparison, 2) + " 2.25 (.00900), " +
                CodeOf(comparison, 1) + " 3.04 (.00200)");
}

TEST(ComparisonTable, NothingOfAReportBecomesMarkupOrAnotherCell) {
  Json hostile = SampleReport({.hostile = true});
  hostile["validation"]["model"]["id"] = "a|b\n<img src=x>`";
  hostile["validation"]["arms"][1]["description"] = "=1+1|\n<script>\"";
  const Json comparison = CombineReports({{"a", SampleReport()}, {"b", hostile}});
  const std::string table = ComparisonMarkdown(comparison, {});
  for (const char* bad : {"<script", "<img", "a|b", "\x01"}) EXPECT_FALSE(Says(table, bad));
  const std::string csv = ComparisonCsv(comparison);
  EXPECT_TRUE(Says(csv, ",\"'=1+1|\n<script>\"\"\","));
}

TEST(ComparisonTable, StandsBetweenTheMarksOfAPage) {
  const std::string begin(kTableBegin), end(kTableEnd);
  const std::string page = "before\n" + begin + "old\n" + end + "after\n";
  EXPECT_EQ(WithTable(page, "new\n", "README.md"), "before\n" + begin + "new\n" + end + "after\n");
  EXPECT_EQ(WithTable(WithTable(page, "new\n", "p"), "old\n", "p"), page);
  for (const std::string& broken :
       {std::string("no marks"), begin + "x", end + begin, begin + begin + end, begin + end + end})
    EXPECT_THROW(WithTable(broken, "new", "README.md"), InputError) << broken;
}

}  // namespace
}  // namespace oscar
